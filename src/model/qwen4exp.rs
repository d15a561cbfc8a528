//! The `qwen4exp` architecture: which tensors take part, in the order in which a token meets them.

use super::bind::{Binder, TensorRef, VectorRef};
use super::spec::{LayerKind, PleSpec, Spec};
use super::{ModelError, Problem};
use crate::gguf::{GgufFile, TensorInfo};

/// A model whose tensors are all there, with their shapes and formats checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub spec: Spec,
    /// [vocab][hidden]
    pub embed: TensorRef,
    pub layers: Vec<Layer>,
    /// Makes the final vector from the streams; it has no `inject`.
    pub final_mix: Mixer,
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
    pub block_mix: Mixer,
    pub block: Block,
    pub moe_mix: Mixer,
    pub moe: Moe,
}

/// What stands in a layer before its experts.
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
    /// [value_heads][hidden]
    pub beta: TensorRef,
    /// [value_heads][hidden]
    pub alpha: TensorRef,
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
    pub shared: SharedExpert,
}

/// The expert that every token uses.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedExpert {
    /// [shared_ff][hidden]
    pub gate: TensorRef,
    /// [shared_ff][hidden]
    pub up: TensorRef,
    /// [hidden][shared_ff]
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
    /// When the architecture is another one; else with everything that is missing, misshapen, in a format the engine
    /// does not compute with, or present and not understood in a way that would change results.
    pub fn new(file: &GgufFile) -> Result<Bound, ModelError> {
        check_architecture(file)?;
        let mut problems = Vec::new();
        let vocab = vocab(file, &mut problems);
        let (spec, warnings) = match Spec::read(file.metadata(), vocab) {
            Ok(read) => read,
            Err(more) => {
                problems.extend(more);
                refuse_modifiers(file, usize::MAX, &mut problems);
                return Err(ModelError::Problems(problems));
            }
        };
        refuse_modifiers(file, spec.layers, &mut problems);
        bind(file, spec, warnings, problems)
    }
}

fn check_architecture(file: &GgufFile) -> Result<(), ModelError> {
    let found = match file.metadata().str("general.architecture") {
        Ok(Some(found)) if super::ARCHITECTURES.contains(&found) => return Ok(()),
        Ok(Some(found)) => found.escape_debug().to_string(),
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

fn behind_trunk(info: &TensorInfo, layers: usize) -> bool {
    let block = info.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    block.and_then(|(index, _)| index.parse::<usize>().ok()).is_some_and(|index| index >= layers)
}

fn bind(file: &GgufFile, spec: Spec, mut warnings: Vec<String>, problems: Vec<Problem>) -> Result<Bound, ModelError> {
    let mut binder = Binder::new(file, problems);
    let b = &mut binder;
    let embed = b.matrix(EMBED, spec.vocab, spec.hidden);
    let table = |ple: &PleSpec| b.table("per_layer_token_embd.weight", ple.table_rows(), ple.row_dim);
    let ple_table = spec.ple.as_ref().map(table);
    let layers = (0..spec.layers).map(|i| layer(b, &spec, i)).collect();
    let final_mix = mixer(b, &spec, "output_hc", false);
    let output = if b.has(OUTPUT) { b.matrix(OUTPUT, spec.vocab, spec.hidden) } else { embed.clone() };

    for info in file.tensors() {
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
    let block_mix = mixer(b, spec, &format!("blk.{i}.hc_attn"), true);
    let block = match spec.kinds[i] {
        LayerKind::Gdn => Block::Gdn(gdn(b, spec, i)),
        LayerKind::Attention { ratio } => Block::Attention(attention(b, spec, i, ratio)),
    };
    let moe_mix = mixer(b, spec, &format!("blk.{i}.hc_ffn"), true);
    Layer { ple, block_mix, block, moe_mix, moe: moe(b, spec, i) }
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

fn mixer(b: &mut Binder<'_>, spec: &Spec, stem: &str, inject: bool) -> Mixer {
    let (wide, streams, low_rank) = (spec.wide(), spec.hyper_connections.streams, spec.hyper_connections.low_rank);
    Mixer {
        norm: b.vector(&format!("{stem}_norm.weight"), wide),
        down: b.matrix(&format!("{stem}_down.weight"), low_rank, wide),
        up: b.matrix(&format!("{stem}_up.weight"), wide, low_rank),
        inject: inject.then(|| b.matrix(&format!("{stem}_inject.weight"), streams, wide)),
    }
}

fn gdn(b: &mut Binder<'_>, spec: &Spec, i: usize) -> Gdn {
    let name = |role: &str| format!("blk.{i}.{role}");
    let (hidden, gdn) = (spec.hidden, &spec.gdn);
    Gdn {
        qkv: b.matrix(&name("attn_qkv.weight"), gdn.channels(), hidden),
        gate: b.matrix(&name("attn_gate.weight"), gdn.value_width(), hidden),
        beta: b.matrix(&name("ssm_beta.weight"), gdn.value_heads, hidden),
        alpha: b.matrix(&name("ssm_alpha.weight"), gdn.value_heads, hidden),
        conv: b.taps(&name("ssm_conv1d.weight"), gdn.channels(), gdn.conv_taps),
        dt_bias: b.vector(&name("ssm_dt.bias"), gdn.value_heads),
        a: b.vector(&name("ssm_a"), gdn.value_heads),
        norm: b.vector(&name("ssm_norm.weight"), gdn.head_dim),
        out: b.matrix(&name("ssm_out.weight"), hidden, gdn.value_width()),
    }
}

fn attention(b: &mut Binder<'_>, spec: &Spec, i: usize, ratio: usize) -> Attention {
    let name = |role: &str| format!("blk.{i}.{role}.weight");
    let (hidden, dim) = (spec.hidden, spec.head_dim);
    let (width, kv_width) = (spec.heads * dim, spec.kv_heads * dim);
    Attention {
        q: b.matrix(&name("attn_q"), 2 * width, hidden),
        k: b.matrix(&name("attn_k"), kv_width, hidden),
        v: b.matrix(&name("attn_v"), kv_width, hidden),
        q_norm: b.vector(&name("attn_q_norm"), dim),
        k_norm: b.vector(&name("attn_k_norm"), dim),
        indexer: indexer(b, spec, i, ratio),
        output: b.matrix(&name("attn_output"), hidden, width),
    }
}

fn indexer(b: &mut Binder<'_>, spec: &Spec, i: usize, ratio: usize) -> Option<Indexer> {
    let name = |role: &str| format!("blk.{i}.indexer.{role}.weight");
    if ratio == 0 {
        // A dense layer may carry them all the same.
        for role in ["q_proj", "k_proj", "q_norm", "k_norm"] {
            b.ignore(&name(role));
        }
        return None;
    }
    let (hidden, dim) = (spec.hidden, spec.indexer.head_dim);
    Some(Indexer {
        q_proj: b.matrix(&name("q_proj"), spec.indexer.heads * dim, hidden),
        k_proj: b.matrix(&name("k_proj"), dim, hidden),
        q_norm: b.vector(&name("q_norm"), dim),
        k_norm: b.vector(&name("k_norm"), dim),
    })
}

fn moe(b: &mut Binder<'_>, spec: &Spec, i: usize) -> Moe {
    let name = |role: &str| format!("blk.{i}.ffn_{role}.weight");
    let (hidden, e) = (spec.hidden, &spec.experts);
    Moe {
        router: b.matrix(&name("gate_inp"), e.count, hidden),
        gate: b.experts(&name("gate_exps"), e.count, e.ff, hidden),
        up: b.experts(&name("up_exps"), e.count, e.ff, hidden),
        down: b.experts(&name("down_exps"), e.count, hidden, e.ff),
        shared_gate: b.matrix(&name("gate_inp_shexp"), 1, hidden),
        shared: SharedExpert {
            gate: b.matrix(&name("gate_shexp"), e.shared_ff, hidden),
            up: b.matrix(&name("up_shexp"), e.shared_ff, hidden),
            down: b.matrix(&name("down_shexp"), hidden, e.shared_ff),
        },
    }
}
