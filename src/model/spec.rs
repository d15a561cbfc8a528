//! Hyper-parameters: read from metadata, every value checked.

use std::ops::RangeInclusive;

use super::{Architecture, Problem};
use crate::gguf::{GgufError, Metadata, shorten};

/// Longest context: positions up to here are exact in `f32`, from which the rotary angles start.
pub const MAX_CONTEXT: usize = 1 << 24;
/// Largest head of attention and of the indexer.
pub const MAX_HEAD_DIM: usize = 512;
/// Largest head of the gated delta net.
pub const MAX_GDN_HEAD_DIM: usize = 256;
/// Most taps of a convolution.
pub const MAX_TAPS: usize = 8;
/// Most residual streams.
pub const MAX_STREAMS: usize = 8;
/// Most experts that one token uses.
pub const MAX_EXPERTS_USED: usize = 32;
/// Widest inner vector of a feed-forward.
pub const MAX_FF: usize = 1 << 17;

/// Hyper-parameters; all relations between them that computation relies on hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub arch: Architecture,
    pub layers: usize,
    /// One for each of `layers`.
    pub kinds: Vec<LayerKind>,
    /// Blocks behind the last layer that predict further tokens; they are not bound.
    pub mtp_blocks: usize,
    pub hidden: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Leading dimensions of a head that are rotated; even.
    pub rope_dims: usize,
    pub rope_base: f32,
    pub rms_eps: f32,
    pub context_length: usize,
    pub vocab: usize,
    pub gdn: GdnSpec,
    /// There where layers have experts; the others have a dense feed-forward.
    pub experts: Option<ExpertSpec>,
    /// Width inside the dense feed-forward.
    pub dense_ff: Option<usize>,
    /// There where the residual has several streams.
    pub hyper_connections: Option<HyperConnectionSpec>,
    /// There at least where a layer has a ratio that is not 0.
    pub indexer: Option<IndexerSpec>,
    pub ple: Option<PleSpec>,
}

/// What stands in a layer before its feed-forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    Gdn,
    /// `ratio`: tokens per selectable block, or 0 where every position is visible.
    Attention {
        ratio: usize,
    },
}

/// Gated delta net.
#[derive(Clone, Debug, PartialEq)]
pub struct GdnSpec {
    pub key_heads: usize,
    /// A multiple of `key_heads`.
    pub value_heads: usize,
    pub head_dim: usize,
    pub conv_taps: usize,
    pub gate: GdnGate,
    pub heads: HeadOrder,
}

/// Activation of the gate on a delta net's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GdnGate {
    Sigmoid,
    Silu,
}

/// Which key head a value head reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadOrder {
    /// Value head h reads key head `h mod key_heads`.
    Tiled,
    /// Value head h reads key head `h div (value_heads / key_heads)`.
    Grouped,
}

impl GdnSpec {
    /// Width of all queries, or of all keys.
    pub fn key_width(&self) -> usize {
        self.key_heads * self.head_dim
    }

    /// Width of all values, and of the gate.
    pub fn value_width(&self) -> usize {
        self.value_heads * self.head_dim
    }

    /// Value heads that read the same key head.
    pub fn group(&self) -> usize {
        self.value_heads / self.key_heads
    }

    /// The key head that a value head reads.
    pub fn key_head(&self, value_head: usize) -> usize {
        match self.heads {
            HeadOrder::Tiled => value_head % self.key_heads,
            HeadOrder::Grouped => value_head / self.group(),
        }
    }

    /// Channels of the convolution: queries, keys, values.
    pub fn channels(&self) -> usize {
        2 * self.key_width() + self.value_width()
    }
}

/// Mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertSpec {
    pub count: usize,
    pub used: usize,
    pub ff: usize,
    pub shared_ff: usize,
}

/// Residual streams and the rank of their mixers.
#[derive(Clone, Debug, PartialEq)]
pub struct HyperConnectionSpec {
    pub streams: usize,
    pub low_rank: usize,
}

/// Selection of visible blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexerSpec {
    pub heads: usize,
    pub head_dim: usize,
    /// A multiple of every nonzero ratio.
    pub budget_tokens: usize,
}

/// Embedding of n-grams in front of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct PleSpec {
    pub layer: usize,
    /// Longest n-gram, also the dilation of the convolution.
    pub ngram: usize,
    pub heads_per_ngram: usize,
    pub conv_taps: usize,
    /// Cuts the history of an n-gram, and stands for what is cut off.
    pub eos: u32,
    pub row_dim: usize,
    /// One for each position of an n-gram, the current token first.
    pub multipliers: Vec<u64>,
    /// One for each of [`heads`](Self::heads).
    pub head_offsets: Vec<u64>,
    pub head_sizes: Vec<u64>,
}

impl PleSpec {
    /// Rows read for each token.
    pub fn heads(&self) -> usize {
        (self.ngram - 1) * self.heads_per_ngram
    }

    /// Width of the rows of one token together.
    pub fn width(&self) -> usize {
        self.heads() * self.row_dim
    }

    /// Past vectors that the convolution reads.
    pub fn history(&self) -> usize {
        (self.conv_taps - 1) * self.ngram
    }

    /// The table's rows for the last of `tokens`, which are a sequence from its start.
    ///
    /// An n-gram reaches back to the start of the sequence or to an `eos`; from there on `eos` stands in. The current
    /// token does not cut its own history.
    pub fn rows(&self, tokens: &[u32]) -> Vec<usize> {
        let mut recent = tokens.iter().rev();
        let mut mixed = recent.next().map_or(0, |token| u64::from(*token).wrapping_mul(self.multipliers[0]));
        let mut recent = recent.take_while(|token| **token != self.eos);
        let mut rows = Vec::with_capacity(self.heads());
        let heads = self.head_offsets.chunks(self.heads_per_ngram).zip(self.head_sizes.chunks(self.heads_per_ngram));
        for (multiplier, (offsets, sizes)) in self.multipliers[1..].iter().zip(heads) {
            let token = recent.next().copied().unwrap_or(self.eos);
            mixed ^= u64::from(token).wrapping_mul(*multiplier);
            rows.extend(offsets.iter().zip(sizes).map(|(offset, size)| (mixed % size + offset) as usize));
        }
        rows
    }

    /// Rows that the table has to have.
    pub fn table_rows(&self) -> u64 {
        let ends = self.head_offsets.iter().zip(&self.head_sizes).map(|(offset, size)| offset.saturating_add(*size));
        ends.max().unwrap_or(0)
    }
}

impl Spec {
    /// Reads the keys of a file whose embedding has `vocab` rows. Beside the result stand warnings.
    ///
    /// # Errors
    /// Every key that is missing, of a wrong type, out of range or at odds with another.
    pub fn read(metadata: &Metadata, arch: Architecture, vocab: usize) -> Result<(Spec, Vec<String>), Vec<Problem>> {
        let mut keys = Keys { metadata, arch, problems: Vec::new() };
        let mut warnings = Vec::new();
        let spec = read(&mut keys, vocab, &mut warnings);
        match spec {
            Some(spec) if keys.problems.is_empty() => Ok((spec, warnings)),
            _ => Err(keys.problems),
        }
    }

    /// Streams of the residual.
    pub fn streams(&self) -> usize {
        self.hyper_connections.as_ref().map_or(1, |connections| connections.streams)
    }

    /// Width of all streams of the residual.
    pub fn wide(&self) -> usize {
        self.streams() * self.hidden
    }

    /// Number of layers whose attention sees everything or selects.
    pub fn attention_layers(&self) -> usize {
        self.kinds.iter().filter(|kind| matches!(kind, LayerKind::Attention { .. })).count()
    }
}

fn read(keys: &mut Keys<'_>, vocab: usize, warnings: &mut Vec<String>) -> Option<Spec> {
    let blocks = keys.integer("block_count", 1..=1024, None);
    let mtp_blocks = keys.integer("nextn_predict_layers", 0..=blocks.map_or(1024, |n| n - 1), Some(0));
    let context_length = keys.integer("context_length", 1..=MAX_CONTEXT, None);
    let hidden = keys.multiple("embedding_length", 32, 32..=1 << 16, None);

    let kinds = blocks.zip(mtp_blocks).and_then(|(blocks, mtp)| keys.kinds(blocks, blocks - mtp));
    let heads = keys.for_attention("attention.head_count", kinds.as_deref(), blocks, None);
    let kv_heads = keys.for_attention("attention.head_count_kv", kinds.as_deref(), blocks, heads);
    if let Some((heads, kv_heads)) = heads.zip(kv_heads) {
        let divides = heads.is_multiple_of(kv_heads);
        keys.check(divides, "attention.head_count_kv", || format!("a divisor of the {heads} heads"), kv_heads);
    }
    let head_default = hidden.zip(heads).map(|(hidden, heads)| hidden / heads);
    let head_dim = keys.multiple("attention.key_length", 16, 16..=MAX_HEAD_DIM, head_default);
    let value_dim = keys.integer("attention.value_length", 1..=MAX_HEAD_DIM, head_default);
    if let Some((key, value)) = head_dim.zip(value_dim) {
        keys.check(key == value, "attention.value_length", || format!("the key length {key}"), value);
    }
    // From 2^-100 to 1: inside the range of the reciprocal root even for a vector of zeros.
    let rms_eps = keys.float("attention.layer_norm_rms_epsilon", 2f32.powi(-100)..=1.0, None);
    let rope_base = keys.float("rope.freq_base", 1.0..=1e12, Some(1e4));
    let rope_dims = keys.multiple("rope.dimension_count", 2, 2..=MAX_HEAD_DIM, head_dim);
    keys.no_rope_scaling();
    keys.rope_sections(rope_dims);

    let gdn_head_dim = keys.multiple("ssm.state_size", 16, 16..=MAX_GDN_HEAD_DIM, None);
    let key_heads = keys.integer("ssm.group_count", 1..=1024, None);
    let value_heads = keys.integer("ssm.time_step_rank", 1..=1024, None);
    if let Some((key, value)) = key_heads.zip(value_heads) {
        let multiple = value.is_multiple_of(key);
        keys.check(multiple, "ssm.time_step_rank", || format!("a multiple of the {key} key heads"), value);
    }
    let inner = keys.integer("ssm.inner_size", 1..=MAX_GDN_HEAD_DIM * 1024, None);
    if let Some(((dim, heads), inner)) = gdn_head_dim.zip(value_heads).zip(inner) {
        keys.check(inner == dim * heads, "ssm.inner_size", || format!("{heads} value heads of {dim}"), inner);
    }
    let gdn_taps = keys.integer("ssm.conv_kernel", 2..=MAX_TAPS, None);

    let arch = keys.arch;
    let experts = arch.has_experts().then(|| keys.experts());
    let dense_ff = (!arch.has_experts()).then(|| keys.feed_forward(kinds.as_deref(), blocks));
    let hyper_connections = arch.has_streams().then(|| keys.hyper_connections());
    let indexer = arch.has_streams().then(|| keys.indexer());
    let index = indexer.iter().flatten().next();
    let (index_dim, budget) = (index.map(|index| index.head_dim), index.map(|index| index.budget_tokens));
    if let Some((rope, smallest)) = rope_dims.zip(head_dim.map(|dim| dim.min(index_dim.unwrap_or(dim)))) {
        let fits = rope <= smallest;
        keys.check(fits, "rope.dimension_count", || format!("at most {smallest}, the shorter head"), rope);
    }
    let (mut kinds, mut ple) = (kinds, Some(None));
    if arch.has_streams() {
        kinds = kinds.zip(blocks).and_then(|(kinds, blocks)| keys.ratios(kinds, blocks, budget, warnings));
        if let Some(kinds) = &kinds {
            ple = keys.ple(kinds, vocab);
        }
    }

    let gdn = GdnSpec {
        key_heads: key_heads?,
        value_heads: value_heads?,
        head_dim: gdn_head_dim?,
        conv_taps: gdn_taps?,
        gate: arch.gdn_gate(),
        heads: arch.gdn_heads(),
    };
    let kinds = kinds?;
    Some(Spec {
        arch,
        layers: kinds.len(),
        kinds,
        mtp_blocks: mtp_blocks?,
        hidden: hidden?,
        heads: heads?,
        kv_heads: kv_heads?,
        head_dim: head_dim?,
        rope_dims: rope_dims?,
        rope_base: rope_base?,
        rms_eps: rms_eps?,
        context_length: context_length?,
        vocab,
        gdn,
        experts: there(experts)?,
        dense_ff: there(dense_ff)?,
        hyper_connections: there(hyper_connections)?,
        indexer: there(indexer)?,
        ple: ple?,
    })
}

/// From what was read of a part that the architecture may lack; `None` stands for a problem.
fn there<T>(part: Option<Option<T>>) -> Option<Option<T>> {
    match part {
        Some(read) => read.map(Some),
        None => Some(None),
    }
}

/// Access to keys that notes what is wrong and goes on.
struct Keys<'a> {
    metadata: &'a Metadata,
    arch: Architecture,
    problems: Vec<Problem>,
}

fn described<T: std::fmt::Display>(range: &RangeInclusive<T>) -> String {
    format!("{} to {}", range.start(), range.end())
}

impl Keys<'_> {
    fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.arch.name())
    }

    fn problem(&mut self, key: &str, expected: impl Into<String>, found: impl ToString) {
        let (key, expected, found) = (self.full(key), expected.into(), found.to_string());
        self.problems.push(Problem::Key { key, expected, found });
    }

    fn check(&mut self, holds: bool, key: &str, expected: impl FnOnce() -> String, found: impl ToString) {
        if !holds {
            self.problem(key, expected(), found);
        }
    }

    /// The value of a getter, or `None` with a note where it failed.
    fn noted<T>(&mut self, result: Result<Option<T>, GgufError>) -> Option<Option<T>> {
        result.map_err(|error| self.problems.push(error.into())).ok()
    }

    fn integer(&mut self, key: &str, range: RangeInclusive<usize>, default: Option<usize>) -> Option<usize> {
        let value = self.noted(self.metadata.u64(&self.full(key)))?;
        let found = match (value, default) {
            (Some(value), _) => value,
            (None, Some(default)) => default as u64,
            (None, None) => {
                self.problem(key, described(&range), "no such key");
                return None;
            }
        };
        let value = usize::try_from(found).ok().filter(|value| range.contains(value));
        self.check(value.is_some(), key, || described(&range), found);
        value
    }

    fn multiple(
        &mut self,
        key: &str,
        of: usize,
        range: RangeInclusive<usize>,
        default: Option<usize>,
    ) -> Option<usize> {
        let value = self.integer(key, range, default)?;
        let fits = value.is_multiple_of(of);
        self.check(fits, key, || format!("a multiple of {of}"), value);
        fits.then_some(value)
    }

    fn float(&mut self, key: &str, range: RangeInclusive<f32>, default: Option<f32>) -> Option<f32> {
        let expected = format!("{:e} to {:e}", range.start(), range.end());
        match self.noted(self.metadata.f32(&self.full(key)))?.or(default) {
            Some(value) if range.contains(&value) => Some(value),
            Some(value) => {
                self.problem(key, expected, format!("{value:e}"));
                None
            }
            None => {
                self.problem(key, expected, "no such key");
                None
            }
        }
    }

    /// Which layers are recurrent, from a flag for each block or from the interval; ratios are filled in later.
    fn kinds(&mut self, blocks: usize, layers: usize) -> Option<Vec<LayerKind>> {
        const FLAGS: &str = "attention.recurrent_layers";
        let flags = match self.noted(self.metadata.bool_array(&self.full(FLAGS)))? {
            Some(flags) if flags.len() == blocks => flags,
            Some(flags) => {
                self.problem(FLAGS, format!("{blocks} flags, one for each block"), flags.len());
                return None;
            }
            None => {
                let interval = self.integer("full_attention_interval", 1..=1024, Some(4))?;
                (1..=blocks).map(|i| !i.is_multiple_of(interval)).collect()
            }
        };
        let kind = |recurrent: &bool| if *recurrent { LayerKind::Gdn } else { LayerKind::Attention { ratio: 0 } };
        Some(flags[..layers].iter().map(kind).collect())
    }

    /// A count that may be given for each block, though it is one for all layers that use it. `users` says which do and
    /// what they are called.
    fn for_layers(
        &mut self,
        key: &str,
        users: (Option<Vec<bool>>, &str),
        blocks: Option<usize>,
        range: RangeInclusive<usize>,
        default: Option<usize>,
    ) -> Option<usize> {
        let (uses, blocks) = (users.0?, blocks?);
        let Some(values) = self.noted(self.metadata.u64_per_layer(&self.full(key), blocks))? else {
            self.check(default.is_some(), key, || described(&range), "no such key");
            return default;
        };
        let mut used = uses.iter().zip(&values).filter(|(uses, _)| **uses).map(|(_, value)| *value);
        // A model without such layers still has to state something.
        let first = used.next().unwrap_or(values[0]);
        if let Some(other) = used.find(|value| *value != first) {
            self.problem(key, format!("one value for all {}", users.1), format!("{first} and {other}"));
            return None;
        }
        let value = usize::try_from(first).ok().filter(|value| range.contains(value));
        self.check(value.is_some(), key, || described(&range), first);
        value
    }

    fn for_attention(
        &mut self,
        key: &str,
        kinds: Option<&[LayerKind]>,
        blocks: Option<usize>,
        default: Option<usize>,
    ) -> Option<usize> {
        let uses = kinds.map(|kinds| kinds.iter().map(|kind| *kind != LayerKind::Gdn).collect());
        self.for_layers(key, (uses, "attention layers"), blocks, 1..=1024, default)
    }

    fn feed_forward(&mut self, kinds: Option<&[LayerKind]>, blocks: Option<usize>) -> Option<usize> {
        const KEY: &str = "feed_forward_length";
        let uses = kinds.map(|kinds| vec![true; kinds.len()]);
        let value = self.for_layers(KEY, (uses, "layers"), blocks, 32..=MAX_FF, None)?;
        let fits = value.is_multiple_of(32);
        self.check(fits, KEY, || "a multiple of 32".to_owned(), value);
        fits.then_some(value)
    }

    fn experts(&mut self) -> Option<ExpertSpec> {
        let count = self.integer("expert_count", 1..=4096, None);
        let limit = count.unwrap_or(MAX_EXPERTS_USED).min(MAX_EXPERTS_USED);
        let used = self.integer("expert_used_count", 1..=limit, None);
        // Older files state one width for all experts of a token together, and that of the shared one not at all.
        let dense = self.metadata.u64(&self.full("feed_forward_length")).ok().flatten();
        let dense = dense.and_then(|dense| usize::try_from(dense).ok());
        let each = dense.zip(used).map(|(dense, used)| dense / used);
        let ff = self.multiple("expert_feed_forward_length", 32, 32..=MAX_FF, each);
        let shared_ff = self.multiple("expert_shared_feed_forward_length", 32, 32..=MAX_FF, dense);
        Some(ExpertSpec { count: count?, used: used?, ff: ff?, shared_ff: shared_ff? })
    }

    fn hyper_connections(&mut self) -> Option<HyperConnectionSpec> {
        let streams = self.integer("hyper_connection.count", 2..=MAX_STREAMS, None);
        let low_rank = self.multiple("hyper_connection.low_rank", 32, 32..=1 << 16, None);
        Some(HyperConnectionSpec { streams: streams?, low_rank: low_rank? })
    }

    fn indexer(&mut self) -> Option<IndexerSpec> {
        let heads = self.integer("attention.indexer.head_count", 1..=1024, None);
        let head_dim = self.multiple("attention.indexer.key_length", 16, 16..=MAX_HEAD_DIM, None);
        let budget_tokens = self.integer("attention.indexer.top_k", 1..=MAX_CONTEXT, None);
        Some(IndexerSpec { heads: heads?, head_dim: head_dim?, budget_tokens: budget_tokens? })
    }

    fn ratios(
        &mut self,
        mut kinds: Vec<LayerKind>,
        blocks: usize,
        budget: Option<usize>,
        warnings: &mut Vec<String>,
    ) -> Option<Vec<LayerKind>> {
        const KEY: &str = "attention.compress_ratios";
        let Some(ratios) = self.noted(self.metadata.u64_per_layer(&self.full(KEY), blocks))? else {
            self.problem(KEY, format!("{blocks} integers, one for each block"), "no such key");
            return None;
        };
        let before = self.problems.len();
        let mut common = None;
        for (i, (kind, value)) in kinds.iter_mut().zip(&ratios).enumerate() {
            let LayerKind::Attention { ratio } = kind else {
                self.check(*value == 0, KEY, || format!("0 for the recurrent layer {i}"), value);
                continue;
            };
            if *value == 0 {
                continue;
            }
            let first = *common.get_or_insert(*value);
            self.check(*value == first, KEY, || format!("the same ratio for all layers, {first}"), value);
            match usize::try_from(*value) {
                Ok(value) if value <= MAX_CONTEXT => *ratio = value,
                _ => self.problem(KEY, format!("at most {MAX_CONTEXT}"), value),
            }
        }
        if let (Some(ratio), Some(budget)) = (common, budget) {
            let divides = ratio > 1 && (budget as u64).is_multiple_of(ratio);
            self.check(divides, KEY, || format!("a divisor above 1 of the budget {budget}"), ratio);
        }
        if common.is_none() && kinds.contains(&LayerKind::Attention { ratio: 0 }) {
            let key = self.full(KEY);
            warnings.push(format!(
                "key `{key}` is 0 for every layer: attention is dense; a faulty conversion of a sparse model looks the same"
            ));
        }
        (self.problems.len() == before).then_some(kinds)
    }

    /// The outer `None` stands for a problem, the inner one for a model without the embedding.
    fn ple(&mut self, kinds: &[LayerKind], vocab: usize) -> Option<Option<PleSpec>> {
        let layers = self.noted(self.metadata.u64_array(&self.full("ple.layers")))?.unwrap_or_default();
        let layer = match layers[..] {
            [] => return Some(None),
            [layer] => usize::try_from(layer).ok().filter(|layer| *layer < kinds.len()),
            _ => None,
        };
        let expected = || format!("at most one layer below {}", kinds.len());
        self.check(layer.is_some(), "ple.layers", expected, format!("{layers:?}"));
        let ngram = self.integer("ple.ngram_size", 2..=8, None);
        let heads_per_ngram = self.integer("ple.heads_per_ngram", 1..=64, None);
        let conv_taps = self.integer("ple.conv_kernel", 2..=MAX_TAPS, None);
        let eos = self.integer("ple.eos_token_id", 0..=vocab.saturating_sub(1), None);
        let row_dim = self.multiple("embedding_length_per_layer_input", 32, 32..=1 << 16, None);
        let heads = ngram.zip(heads_per_ngram).map(|(ngram, heads)| (ngram - 1) * heads);
        let multipliers = self.constants("ple.layer_multipliers", ngram);
        let head_offsets = self.constants("ple.head_offsets", heads);
        let head_sizes = self.constants("ple.head_vocab_sizes", heads);
        if let Some(sizes) = &head_sizes {
            self.check(!sizes.contains(&0), "ple.head_vocab_sizes", || "sizes above 0".to_owned(), "0");
        }
        Some(Some(PleSpec {
            layer: layer?,
            ngram: ngram?,
            heads_per_ngram: heads_per_ngram?,
            conv_taps: conv_taps?,
            eos: u32::try_from(eos?).ok()?,
            row_dim: row_dim?,
            multipliers: multipliers?,
            head_offsets: head_offsets?,
            head_sizes: head_sizes?,
        }))
    }

    /// The first `count` of an array that may be longer.
    fn constants(&mut self, key: &str, count: Option<usize>) -> Option<Vec<u64>> {
        let values = self.noted(self.metadata.u64_array(&self.full(key)))?;
        let count = count?;
        match values {
            Some(mut values) if values.len() >= count => {
                values.truncate(count);
                Some(values)
            }
            values => {
                let found = values.map_or("no such key".to_owned(), |values| format!("{} integers", values.len()));
                self.problem(key, format!("at least {count} integers"), found);
                None
            }
        }
    }

    /// Stretched rotary angles are another model.
    fn no_rope_scaling(&mut self) {
        const KEY: &str = "rope.scaling.type";
        if let Some(Some(kind)) = self.noted(self.metadata.str(&self.full(KEY))) {
            let kind = shorten(kind);
            self.check(kind == "none", KEY, || "none".to_owned(), kind);
            return;
        }
        // Without a type a factor means linear stretching.
        const FACTOR: &str = "rope.scaling.factor";
        if let Some(Some(factor)) = self.noted(self.metadata.f32(&self.full(FACTOR))) {
            self.check(factor == 0.0 || factor == 1.0, FACTOR, || "1".to_owned(), factor);
        }
    }

    /// Pairs of rotated dimensions that turn with time, height and width, which in a text are all the position; those
    /// of the fourth kind would not turn at all.
    fn rope_sections(&mut self, rope_dims: Option<usize>) {
        const KEY: &str = "rope.dimension_sections";
        let sections = self.noted(self.metadata.u64_array(&self.full(KEY)));
        let (Some(Some(sections)), Some(dims)) = (sections, rope_dims) else { return };
        let (turning, rest) = sections.split_at(sections.len().min(3));
        let pairs = turning.iter().fold(0_u64, |pairs, n| pairs.saturating_add(*n));
        let holds = sections.len() <= 4 && pairs == dims as u64 / 2 && rest.iter().all(|n| *n == 0);
        let expected = || format!("three counts that add up to {}, then 0", dims / 2);
        self.check(holds, KEY, expected, format!("{:?}", &sections[..sections.len().min(8)]));
    }
}
