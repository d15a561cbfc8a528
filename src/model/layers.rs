//! Which tensors take part, in the order in which a token meets them.

use std::collections::{BTreeSet, HashSet};

use super::bind::{Binder, TensorRef, VectorRef, exactly_bf16};
use super::spec::{GdnSpec, HeadOrder, LayerKind, PleSpec, Spec};
use super::{Architecture, ModelError, Problem};
use crate::gguf::{GgufFile, TensorInfo, shorten};

/// A model whose tensors are all there, with their shapes and formats checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub spec: Spec,
    /// [vocab][hidden]
    pub embed: TensorRef,
    pub layers: Vec<Layer>,
    /// Makes the final vector from the residual; a mixer has no `inject` here.
    pub final_mix: PreNorm,
    /// [vocab][hidden], the embedding itself where the file has no `output.weight`.
    pub output: TensorRef,
    /// [rows][row_dim]; there exactly if `spec.ple` is.
    pub ple_table: Option<TensorRef>,
    /// What is odd about the file but does not keep it from being used.
    pub warnings: Vec<String>,
}

/// One layer, its parts in the order of execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub ple: Option<Ple>,
    pub block_mix: PreNorm,
    pub block: Block,
    pub ffn_mix: PreNorm,
    pub ffn: FeedForward,
}

/// Makes a block's input from the residual.
#[derive(Clone, Debug, PartialEq)]
pub enum PreNorm {
    /// From several streams.
    Mixer(Box<Mixer>),
    /// From one: [hidden]
    Norm(VectorRef),
}

/// What stands in a layer before its feed-forward.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Gdn(Gdn),
    Attention(Attention),
}

/// Turns the streams into one vector, and says how its block's output is added to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixer {
    /// [streams][hidden]
    pub norm: VectorRef,
    /// [low_rank][streams * hidden]
    pub down: TensorRef,
    /// [streams * hidden][low_rank]
    pub up: TensorRef,
    /// [streams][streams * hidden]
    pub inject: Option<TensorRef>,
}

/// Gated delta net.
#[derive(Clone, Debug, PartialEq)]
pub struct Gdn {
    /// Rows of all queries, all keys, all values: [channels][hidden]
    pub qkv: TensorRef,
    /// [value_heads * head_dim][hidden]
    pub gate: TensorRef,
    pub gates: GdnGates,
    /// [channels][taps], the last tap is for the current token.
    pub conv: VectorRef,
    /// [value_heads]
    pub dt_bias: VectorRef,
    /// [value_heads], negative.
    pub a: VectorRef,
    /// [head_dim]
    pub norm: VectorRef,
    /// [hidden][value_heads * head_dim]
    pub out: TensorRef,
}

/// Makes the write strengths (beta) and decays (alpha) of the value heads.
#[derive(Clone, Debug, PartialEq)]
pub enum GdnGates {
    /// [value_heads][hidden] each.
    Separate { beta: TensorRef, alpha: TensorRef },
    /// For each key head the betas of its value heads, then their alphas: [2 * value_heads][hidden]
    Packed(TensorRef),
}

/// Full or sparse attention.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// For each head its query rows, then its gate rows: [heads * 2 * head_dim][hidden]
    pub q: TensorRef,
    /// [kv_heads * head_dim][hidden]
    pub k: TensorRef,
    /// [kv_heads * head_dim][hidden]
    pub v: TensorRef,
    /// [head_dim]
    pub q_norm: VectorRef,
    /// [head_dim]
    pub k_norm: VectorRef,
    /// There exactly if the layer's ratio is not 0.
    pub indexer: Option<Indexer>,
    /// [hidden][heads * head_dim]
    pub output: TensorRef,
}

/// Scores blocks of positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Indexer {
    /// [heads * head_dim][hidden]
    pub q_proj: TensorRef,
    /// [head_dim][hidden]
    pub k_proj: TensorRef,
    /// [head_dim]
    pub q_norm: VectorRef,
    /// [head_dim]
    pub k_norm: VectorRef,
}

/// What stands in a layer behind its block.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedForward {
    /// Of the width dense_ff.
    Dense(Box<Swiglu>),
    Moe(Box<Moe>),
}

/// Mixture of experts and the expert that all tokens share.
#[derive(Clone, Debug, PartialEq)]
pub struct Moe {
    /// [experts][hidden]
    pub router: TensorRef,
    /// [experts][ff][hidden]
    pub gate: TensorRef,
    /// [experts][ff][hidden]
    pub up: TensorRef,
    /// [experts][hidden][ff]
    pub down: TensorRef,
    /// [1][hidden]
    pub shared_gate: TensorRef,
    /// Of the width shared_ff.
    pub shared: Swiglu,
}

/// A feed-forward that every token takes: `down(silu(gate(m)) * up(m))`.
#[derive(Clone, Debug, PartialEq)]
pub struct Swiglu {
    /// [ff][hidden]
    pub gate: TensorRef,
    /// [ff][hidden]
    pub up: TensorRef,
    /// [hidden][ff]
    pub down: TensorRef,
}

/// Adds the embedding of n-grams to the streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Ple {
    /// [streams * hidden][width]
    pub key: TensorRef,
    /// [hidden][width]
    pub value: TensorRef,
    /// [streams][hidden]
    pub norm_key: VectorRef,
    /// [streams][hidden]
    pub norm_query: VectorRef,
    /// [streams][hidden]
    pub norm_conv: VectorRef,
    /// [streams * hidden][taps], the last tap is for the current token.
    pub conv: VectorRef,
}

const EMBED: &str = "token_embd.weight";
const OUTPUT: &str = "output.weight";

impl Bound {
    /// Reads the hyper-parameters and binds every tensor of the trunk. Blocks behind it, which predict further tokens,
    /// are passed over.
    ///
    /// # Errors
    /// When the architecture is another one or the file has no trunk; else with everything that is missing, misshapen, in a format the engine
    /// does not compute with, or present and not understood in a way that would change results.
    pub fn new(file: &GgufFile) -> Result<Bound, ModelError> {
        Bound::read(file, &HashSet::new())
    }

    /// As [`Bound::new`], and matrices in F32 whose values are all BF16's become BF16: kernels widen both to the same
    /// f32, so that results are the same from half the bytes. Reads these matrices.
    ///
    /// # Errors
    /// As [`Bound::new`].
    pub fn narrowed(file: &GgufFile) -> Result<Bound, ModelError> {
        Bound::read(file, &exactly_bf16(file))
    }

    fn read(file: &GgufFile, narrowed: &HashSet<String>) -> Result<Bound, ModelError> {
        let arch = architecture(file)?;
        if let Some(first) = only_predictors(file) {
            return Err(ModelError::OnlyPredictors { first });
        }
        let mut problems = Vec::new();
        let vocab = vocab(file, &mut problems);
        let (spec, warnings) = match Spec::read(file.metadata(), arch, vocab) {
            Ok(read) => read,
            Err(more) => {
                problems.extend(more);
                refuse_modifiers(file, usize::MAX, &mut problems);
                return Err(ModelError::Problems(problems));
            }
        };
        refuse_modifiers(file, spec.layers, &mut problems);
        refuse_layers_behind_trunk(file, &spec, &mut problems);
        bind(Binder::new(file, narrowed, problems), spec, warnings)
    }
}

fn architecture(file: &GgufFile) -> Result<Architecture, ModelError> {
    let found = match file.metadata().str("general.architecture") {
        Ok(Some(found)) => match Architecture::from_name(found) {
            Some(arch) => return Ok(arch),
            None => shorten(found),
        },
        Ok(None) => "no key `general.architecture`".to_owned(),
        Err(error) => return Err(ModelError::Problems(vec![error.into()])),
    };
    Err(ModelError::Architecture { found })
}

/// The embedding decides how many tokens there are; the most there can be stand in where it is missing.
fn vocab(file: &GgufFile, problems: &mut Vec<Problem>) -> usize {
    let rows = file.tensor(EMBED).and_then(|info| info.dims.get(1).copied());
    let limit = 1 << 24;
    match rows.and_then(|rows| usize::try_from(rows).ok()).filter(|rows| *rows <= limit) {
        Some(rows) => rows,
        None => {
            let found = rows.map_or("no such tensor or no second dimension".to_owned(), |rows| rows.to_string());
            let (name, expected) = (EMBED.to_owned(), format!("1 to {limit} rows"));
            problems.push(Problem::Tensor { name, expected, found });
            limit
        }
    }
}

/// Tensors that change what other tensors mean: to overlook one would give wrong results.
fn refuse_modifiers(file: &GgufFile, layers: usize, problems: &mut Vec<Problem>) {
    let is_modifier =
        |name: &str| name.ends_with(".scale") || name.contains("rope_freqs") || name.contains("rope_factors");
    for info in file.tensors().iter().filter(|info| is_modifier(&info.name) && !behind_trunk(info, layers)) {
        let (name, expected) = (info.name.clone(), "no tensor that scales weights or rotary angles".to_owned());
        problems.push(Problem::Tensor { name, expected, found: "one".to_owned() });
    }
}

/// Blocks that the keys do not count, or count as those that predict further tokens though they are others: a trunk
/// without them would be another model.
fn refuse_layers_behind_trunk(file: &GgufFile, spec: &Spec, problems: &mut Vec<Problem>) {
    let parts = || file.tensors().iter().filter_map(block).filter(|(index, _)| *index >= spec.layers);
    let behind: BTreeSet<usize> = parts().map(|(index, _)| index).collect();
    let predictors = parts().filter(|(_, role)| role.starts_with("nextn.")).map(|(index, _)| index).collect();
    let blocks = spec.layers + spec.mtp_blocks;
    let key = |name: &str| format!("{}.{name}", spec.arch.name());
    if let Some(last) = behind.last().filter(|last| **last >= blocks) {
        let (expected, found) = (format!("a count above {last}, the last block that has tensors"), blocks.to_string());
        problems.push(Problem::Key { key: key("block_count"), expected, found });
    } else if let Some(layer) = behind.difference(&predictors).next() {
        let expected = format!("a count that leaves out block {layer}, which has no tensor `nextn.*`");
        problems.push(Problem::Key { key: key("nextn_predict_layers"), expected, found: spec.mtp_blocks.to_string() });
    }
}

/// The first block of a file that holds none but those that predict further tokens. The keys are those of the whole
/// model, so that only the tensors tell.
fn only_predictors(file: &GgufFile) -> Option<usize> {
    let blocks = || file.tensors().iter().filter_map(block);
    let first = blocks().map(|(index, _)| index).min()?;
    blocks().any(|(index, role)| index == first && role.starts_with("nextn.")).then_some(first)
}

fn behind_trunk(info: &TensorInfo, layers: usize) -> bool {
    block(info).is_some_and(|(index, _)| index >= layers)
}

/// The block that a tensor is part of, and the rest of its name.
fn block(info: &TensorInfo) -> Option<(usize, &str)> {
    let (index, role) = info.name.strip_prefix("blk.")?.split_once('.')?;
    Some((index.parse().ok()?, role))
}

fn bind(mut binder: Binder<'_>, spec: Spec, mut warnings: Vec<String>) -> Result<Bound, ModelError> {
    let b = &mut binder;
    let embed = b.matrix(EMBED, spec.vocab, spec.hidden);
    let table = |ple: &PleSpec| b.table("per_layer_token_embd.weight", ple.table_rows(), ple.row_dim);
    let ple_table = spec.ple.as_ref().map(table);
    let layers = (0..spec.layers).map(|i| layer(b, &spec, i)).collect();
    let final_mix = pre_norm(b, &spec, ("output_hc", false), "output_norm.weight");
    let output = if b.has(OUTPUT) { b.matrix(OUTPUT, spec.vocab, spec.hidden) } else { embed.clone() };

    for info in binder.tensors() {
        if !binder.claimed(&info.name) && !behind_trunk(info, spec.layers) {
            warnings.push(format!("tensor `{}` is not used", info.name));
        }
    }
    if !binder.problems.is_empty() {
        return Err(ModelError::Problems(binder.problems));
    }
    Ok(Bound { spec, embed, layers, final_mix, output, ple_table, warnings })
}

fn layer(b: &mut Binder<'_>, spec: &Spec, i: usize) -> Layer {
    let ple = spec.ple.as_ref().filter(|ple| ple.layer == i).map(|ple| ple_tensors(b, spec, ple, i));
    let norm = |b: &mut Binder<'_>, stem: &str, norm: &str| {
        pre_norm(b, spec, (&format!("blk.{i}.{stem}"), true), &format!("blk.{i}.{norm}.weight"))
    };
    let block_mix = norm(b, "hc_attn", "attn_norm");
    let block = match spec.kinds[i] {
        LayerKind::Gdn => Block::Gdn(gdn(b, spec, i)),
        LayerKind::Attention { ratio } => Block::Attention(attention(b, spec, i, ratio)),
    };
    // The name tells where the norm stands, not what it is applied to.
    let ffn_mix = norm(b, "hc_ffn", "post_attention_norm");
    Layer { ple, block_mix, block, ffn_mix, ffn: feed_forward(b, spec, i) }
}

fn ple_tensors(b: &mut Binder<'_>, spec: &Spec, ple: &PleSpec, i: usize) -> Ple {
    let name = |role: &str| format!("blk.{i}.ple_{role}.weight");
    let wide = spec.wide();
    Ple {
        key: b.matrix(&name("key"), wide, ple.width()),
        value: b.matrix(&name("value"), spec.hidden, ple.width()),
        norm_key: b.vector(&name("norm_key"), wide),
        norm_query: b.vector(&name("norm_query"), wide),
        norm_conv: b.vector(&name("norm_conv"), wide),
        conv: b.taps(&name("conv1d"), wide, ple.conv_taps),
    }
}

fn pre_norm(b: &mut Binder<'_>, spec: &Spec, (stem, inject): (&str, bool), norm: &str) -> PreNorm {
    let Some(connections) = &spec.hyper_connections else {
        return PreNorm::Norm(b.vector(norm, spec.hidden));
    };
    let (wide, streams, low_rank) = (spec.wide(), connections.streams, connections.low_rank);
    PreNorm::Mixer(Box::new(Mixer {
        norm: b.vector(&format!("{stem}_norm.weight"), wide),
        down: b.matrix(&format!("{stem}_down.weight"), low_rank, wide),
        up: b.matrix(&format!("{stem}_up.weight"), wide, low_rank),
        inject: inject.then(|| b.matrix(&format!("{stem}_inject.weight"), streams, wide)),
    }))
}

fn gdn(b: &mut Binder<'_>, spec: &Spec, i: usize) -> Gdn {
    let name = |role: &str| format!("blk.{i}.{role}");
    let (hidden, gdn) = (spec.hidden, &spec.gdn);
    let (qkv, gate) = gdn_inputs(b, gdn, hidden, i);
    Gdn {
        qkv,
        gate,
        gates: match gdn.heads {
            HeadOrder::Tiled => GdnGates::Separate {
                beta: b.matrix(&name("ssm_beta.weight"), gdn.value_heads, hidden),
                alpha: b.matrix(&name("ssm_alpha.weight"), gdn.value_heads, hidden),
            },
            HeadOrder::Grouped => GdnGates::Packed(b.matrix(&name("ssm_ba.weight"), 2 * gdn.value_heads, hidden)),
        },
        conv: b.taps(&name("ssm_conv1d.weight"), gdn.channels(), gdn.conv_taps),
        dt_bias: b.vector(&name("ssm_dt.bias"), gdn.value_heads),
        a: b.vector(&name("ssm_a"), gdn.value_heads),
        norm: b.vector(&name("ssm_norm.weight"), gdn.head_dim),
        out: b.matrix(&name("ssm_out.weight"), hidden, gdn.value_width()),
    }
}

/// The rows of queries, keys and values, and those of the gate.
fn gdn_inputs(b: &mut Binder<'_>, gdn: &GdnSpec, hidden: usize, i: usize) -> (TensorRef, TensorRef) {
    let name = |role: &str| format!("blk.{i}.{role}.weight");
    let (fused, qkv, gate) = (name("ssm_in"), name("attn_qkv"), name("attn_gate"));
    if gdn.heads == HeadOrder::Tiled || !b.has_fused(&fused, &[&qkv, &gate]) {
        return (b.matrix(&qkv, gdn.channels(), hidden), b.matrix(&gate, gdn.value_width(), hidden));
    }
    // For each key head its query, its key, then values and gates of its value heads.
    let (dim, values) = (gdn.head_dim, gdn.group() * gdn.head_dim);
    let stride = 2 * (dim + values);
    let rows =
        |at: usize, len: usize| (0..gdn.key_heads).map(move |head| head * stride + at).map(move |at| at..at + len);
    let qkv = rows(0, dim).chain(rows(dim, dim)).chain(rows(2 * dim, values)).collect();
    let gate = rows(2 * dim + values, values).collect();
    let [qkv, gate] = b.parts(&fused, (None, gdn.key_heads * stride, hidden), [qkv, gate]);
    (qkv, gate)
}

fn attention(b: &mut Binder<'_>, spec: &Spec, i: usize, ratio: usize) -> Attention {
    let name = |role: &str| format!("blk.{i}.{role}.weight");
    let (hidden, dim) = (spec.hidden, spec.head_dim);
    let (width, kv_width) = (spec.heads * dim, spec.kv_heads * dim);
    let (fused, q, k, v) = (name("attn_qkv"), name("attn_q"), name("attn_k"), name("attn_v"));
    let [q, k, v] = if b.has_fused(&fused, &[&q, &k, &v]) {
        let (k, v) = (2 * width, 2 * width + kv_width);
        b.parts(&fused, (None, v + kv_width, hidden), [0..k, k..v, v..v + kv_width].map(|rows| vec![rows]))
    } else {
        [b.matrix(&q, 2 * width, hidden), b.matrix(&k, kv_width, hidden), b.matrix(&v, kv_width, hidden)]
    };
    Attention {
        q,
        k,
        v,
        q_norm: b.vector(&name("attn_q_norm"), dim),
        k_norm: b.vector(&name("attn_k_norm"), dim),
        indexer: indexer(b, spec, i, ratio),
        output: b.matrix(&name("attn_output"), hidden, width),
    }
}

fn indexer(b: &mut Binder<'_>, spec: &Spec, i: usize, ratio: usize) -> Option<Indexer> {
    let name = |role: &str| format!("blk.{i}.indexer.{role}.weight");
    let Some(indexer) = spec.indexer.as_ref().filter(|_| ratio > 0) else {
        // A dense layer may carry them all the same.
        for role in ["q_proj", "k_proj", "q_norm", "k_norm"] {
            b.ignore(&name(role));
        }
        return None;
    };
    let (hidden, dim) = (spec.hidden, indexer.head_dim);
    Some(Indexer {
        q_proj: b.matrix(&name("q_proj"), indexer.heads * dim, hidden),
        k_proj: b.matrix(&name("k_proj"), dim, hidden),
        q_norm: b.vector(&name("q_norm"), dim),
        k_norm: b.vector(&name("k_norm"), dim),
    })
}

fn feed_forward(b: &mut Binder<'_>, spec: &Spec, i: usize) -> FeedForward {
    let name = |role: &str| format!("blk.{i}.ffn_{role}.weight");
    let hidden = spec.hidden;
    let Some(e) = &spec.experts else {
        let ff = spec.dense_ff.unwrap_or(hidden);
        return FeedForward::Dense(Box::new(swiglu(b, ["gate", "up", "down"].map(name), ff, hidden)));
    };
    let (fused, gate, up) = (name("gate_up_exps"), name("gate_exps"), name("up_exps"));
    let router = b.matrix(&name("gate_inp"), e.count, hidden);
    let [gate, up] = if b.has_fused(&fused, &[&gate, &up]) {
        b.parts(&fused, (Some(e.count), 2 * e.ff, hidden), [0..e.ff, e.ff..2 * e.ff].map(|rows| vec![rows]))
    } else {
        [b.experts(&gate, e.count, e.ff, hidden), b.experts(&up, e.count, e.ff, hidden)]
    };
    FeedForward::Moe(Box::new(Moe {
        router,
        gate,
        up,
        down: b.experts(&name("down_exps"), e.count, hidden, e.ff),
        shared_gate: b.matrix(&name("gate_inp_shexp"), 1, hidden),
        shared: swiglu(b, ["gate_shexp", "up_shexp", "down_shexp"].map(name), e.shared_ff, hidden),
    }))
}

fn swiglu(b: &mut Binder<'_>, [gate, up, down]: [String; 3], ff: usize, hidden: usize) -> Swiglu {
    Swiglu { gate: b.matrix(&gate, ff, hidden), up: b.matrix(&up, ff, hidden), down: b.matrix(&down, hidden, ff) }
}
