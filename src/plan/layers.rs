//! The plan of a model: its regions booked and its operations laid out, in order of execution.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::arena::{ArenaKind, Ledger, Region, Slab};
use super::scratch::{AttentionScratch, DenseScratch, GdnScratch, MoeScratch, PleScratch, Scratch, StreamScratch};
use super::steps::{ActKind, AttentionOp, Buffer, BufferBook, Buffers, GatesIn, GatherPart, Op, Rows, SparseOp, Step};
use super::{
    BankPages, CardPlan, Codebook, ExpertLayer, Extent, LOGIT_ROWS, LayerPlan, Options, Place, PlanError, Split,
    StateItem, StateKind, Vector, Weight,
};
use crate::load::pack::{Layout, TILE_ROWS, codebook};
use crate::model::{
    Attention, Block, Bound, FeedForward, Gdn, GdnGates, Layer, LayerKind, Mixer, Moe, Ple, PreNorm, Spec, TensorRef,
    VectorRef,
};

/// Fewest rows of a matrix that cards divide; the exchange after a smaller one takes longer than its computation.
const SPLIT_ROWS_MIN: usize = 64;

/// Entries of int32 before the slots of an expert plan: a count and then triples.
pub fn plan_slots_at(max_entries: usize) -> usize {
    4 + 3 * max_entries
}

/// Most entries that an expert plan over `tokens` can have when an entry takes `rows` slots.
pub fn plan_entries_max(tokens: usize, used: usize, experts: usize, rows: usize) -> usize {
    let slots = tokens * used;
    slots.min(experts + slots / rows)
}

/// A card's part in the work.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub card: usize,
    pub cards: usize,
    pub split: Split,
    /// Layers of the card; all of them where cards divide matrices.
    pub range: Range<usize>,
}

impl Share {
    /// Rows of a matrix that each card computes, in whole tiles, or `None` if every card computes all.
    fn rows(&self, rows: usize) -> Option<Vec<Range<usize>>> {
        if self.split == Split::Layer || self.cards == 1 || rows < SPLIT_ROWS_MIN {
            return None;
        }
        let tiles = rows.div_ceil(TILE_ROWS);
        let at = |card: usize| (tiles * card / self.cards * TILE_ROWS).min(rows);
        (tiles >= self.cards).then(|| (0..self.cards).map(|card| at(card)..at(card + 1)).collect())
    }
}

struct Builder<'a> {
    spec: &'a Spec,
    options: Options,
    share: &'a Share,
    /// The layer that is being planned.
    layer: Option<usize>,
    ledger: Ledger,
    weights: Vec<Weight>,
    vectors: Vec<Vector>,
    experts: Vec<ExpertLayer>,
    state: Vec<StateItem>,
    codebooks: BTreeMap<&'static str, Codebook>,
    modules: BTreeSet<String>,
    /// Buffers for this card's columns of a buffer, by that buffer's region.
    parts: HashMap<Region, Buffer>,
    /// What has to be put together after a product with a weight.
    gathers: HashMap<usize, GatherPart>,
    /// Most bytes of a token that an exchange takes from the card, and gives it.
    exchange_row_bytes: [u64; 2],
}

/// Plans a card's share; experts have no slots yet.
pub(super) fn plan(bound: &Bound, options: Options, share: &Share, ledger: Ledger) -> Result<CardPlan, PlanError> {
    let spec = &bound.spec;
    let mut b = Builder {
        spec,
        options,
        share,
        layer: None,
        ledger,
        weights: Vec::new(),
        vectors: Vec::new(),
        experts: Vec::new(),
        state: Vec::new(),
        codebooks: BTreeMap::new(),
        modules: ["hyper", "act"].map(String::from).into(),
        parts: HashMap::new(),
        gathers: HashMap::new(),
        exchange_row_bytes: [0; 2],
    };
    let logit_rows = b.share.rows(bound.output.rows);
    let is_last = share.range.end == bound.layers.len();
    let logit_range = match &logit_rows {
        Some(rows) => rows[share.card].clone(),
        None if is_last => 0..bound.output.rows,
        None => 0..0,
    };
    let (mut buffers, scratch) = b.buffers(&bound.layers[share.range.clone()], logit_range.len())?;
    let start = buffers.embedded.map(|_| Step { name: "hyper_start", op: Op::HyperStart }).into_iter().collect();
    let mut layers = Vec::with_capacity(share.range.len());
    let mut pending = Vec::new();
    for index in share.range.clone() {
        b.layer = Some(index);
        let steps = b.layer(index, &bound.layers[index], &scratch, &buffers)?;
        layers.push(LayerPlan { index, kind: spec.kinds[index], steps: b.gathered(steps, &mut pending) });
    }
    b.layer = None;
    let mut head = Vec::new();
    if let Some(logits) = buffers.logits {
        b.pre_norm(&bound.final_mix, true, &scratch, &mut head)?;
        head = b.gathered(head, &mut pending);
        let output = if logit_rows.is_some() { &bound.output.rows_of(logit_range.clone()) } else { &bound.output };
        let weight = b.weight(output)?;
        head.push(Step { name: "output", op: Op::Matmul { weight, x: scratch.mixed, y: logits } });
    }
    buffers.staging = b.staging(&buffers, is_last)?;
    Ok(CardPlan {
        range: share.range.clone(),
        ledger: b.ledger,
        weights: b.weights,
        vectors: b.vectors,
        codebooks: b.codebooks.into_values().collect(),
        experts: b.experts,
        host_slots: None,
        state: b.state,
        bank: BankPages { on_card: Slab::empty(0), on_host: Slab::empty(0) },
        buffers,
        start,
        layers,
        head,
        logit_range,
        modules: b.modules,
    })
}

impl Builder<'_> {
    fn buffers(&mut self, layers: &[Layer], logits: usize) -> Result<(Buffers, Scratch), PlanError> {
        let (spec, options) = (self.spec, self.options);
        let (hidden, wide, streams) = (spec.hidden, spec.wide(), spec.streams());
        let ple = layers.iter().any(|layer| layer.ple.is_some());
        let moe = layers.iter().filter(|layer| matches!(layer.ffn, FeedForward::Moe(_))).count();
        let used = spec.experts.as_ref().map_or(0, |experts| experts.used);
        let mut book = BufferBook { ledger: &mut self.ledger, chunk: options.chunk };
        let logits_buffer = match logits {
            0 => None,
            columns => {
                let region = book.region("logits", 4 * columns * LOGIT_ROWS.min(options.chunk))?;
                Some(Buffer { region, row_bytes: 4 * columns as u64 })
            }
        };
        let is_first = self.share.range.start == 0;
        let buffers = Buffers {
            start: book.region("start", 4)?,
            rope: book.region("rope", 4 * options.context * spec.rope_dims)?,
            embedded: is_first.then(|| book.buffer("embedded", hidden)).transpose()?,
            ngrams: spec.ple.as_ref().filter(|_| ple).map(|ple| book.buffer("ngrams", ple.width())).transpose()?,
            residual: book.buffer("residual", wide)?,
            output: book.buffer("output", hidden)?,
            stream_weights: book.buffer("stream_weights", streams)?,
            logits: logits_buffer,
            chosen: (moe > 0).then(|| book.region("chosen", 4 * moe * used * options.chunk)).transpose()?,
            staging: None,
        };
        let kinds = &spec.kinds[self.share.range.clone()];
        let scratch = Scratch::book(&mut book, spec, options, kinds, ple)?;
        Ok((buffers, scratch))
    }

    /// What the card hands to others, and what they hand to it.
    fn staging(&mut self, buffers: &Buffers, is_last: bool) -> Result<Option<[Region; 2]>, PlanError> {
        if self.share.cards == 1 {
            return Ok(None);
        }
        let hop = buffers.hop_row_bytes();
        let steps: [u64; 2] = match self.share.split {
            Split::Layer => [if is_last { 0 } else { hop }, if self.share.range.start == 0 { 0 } else { hop }],
            // The largest exchange is the sum of all that a layer puts together at once.
            Split::Tensor => self.exchange_row_bytes,
        };
        let chunk = self.options.chunk as u64;
        let mut book = |bytes: u64| self.ledger.book(ArenaKind::Staging, "staging", bytes.max(1) * chunk);
        Ok(Some([book(steps[0])?, book(steps[1])?]))
    }

    /// The steps with an exchange in front of the first one that reads what cards computed apart.
    fn gathered(&mut self, steps: Vec<Step>, pending: &mut Vec<GatherPart>) -> Vec<Step> {
        let mut all = Vec::with_capacity(steps.len());
        for step in steps {
            match &step.op {
                Op::Matmul { weight, .. } | Op::ExpertMatmul { weight, .. } => {
                    pending.extend(self.gathers.remove(weight));
                }
                _ if !pending.is_empty() => {
                    let parts = std::mem::take(pending);
                    let out: u64 = parts.iter().map(|part| part.part.row_bytes).sum();
                    let whole: u64 = parts.iter().map(|part| part.whole.row_bytes).sum();
                    let [max_out, max_in] = &mut self.exchange_row_bytes;
                    (*max_out, *max_in) = (out.max(*max_out), whole.max(*max_in));
                    all.push(Step { name: "exchange", op: Op::Gather(parts) });
                }
                _ => {}
            }
            all.push(step);
        }
        all
    }

    fn layer(&mut self, index: usize, layer: &Layer, s: &Scratch, buffers: &Buffers) -> Result<Vec<Step>, PlanError> {
        let mut steps = Vec::new();
        // The output of the previous layer's experts is added by the first step that reads the residual.
        let mut pending = index > 0;
        if let (Some(ple), Some(scratch), Some(ngrams)) = (&layer.ple, &s.ple, buffers.ngrams) {
            self.ple(index, ple, scratch, ngrams, pending, &mut steps)?;
            pending = false;
        }
        self.pre_norm(&layer.block_mix, pending, s, &mut steps)?;
        match &layer.block {
            Block::Gdn(gdn) => {
                let scratch = s.gdn.as_ref().expect("the spec has a delta net layer, so its buffers were booked");
                self.gdn(index, gdn, s.mixed, scratch, buffers.output, &mut steps)?;
            }
            Block::Attention(attention) => {
                let scratch =
                    s.attention.as_ref().expect("the spec has an attention layer, so its buffers were booked");
                self.attention(index, attention, s.mixed, scratch, buffers.output, &mut steps)?;
            }
        }
        self.pre_norm(&layer.ffn_mix, true, s, &mut steps)?;
        match &layer.ffn {
            FeedForward::Moe(moe) => {
                let scratch = s.moe.as_ref().expect("the spec has experts, so their buffers were booked");
                self.moe(moe, s.mixed, scratch, &mut steps)?;
            }
            FeedForward::Dense(dense) => {
                let scratch = s.dense.as_ref().expect("the spec has a feed-forward, so its buffers were booked");
                self.dense([&dense.gate, &dense.up, &dense.down], s.mixed, scratch, buffers.output, &mut steps)?;
            }
        }
        Ok(steps)
    }

    /// The residual, with the pending output added, to one normalised vector.
    fn pre_norm(&mut self, norm: &PreNorm, pending: bool, s: &Scratch, steps: &mut Vec<Step>) -> Result<(), PlanError> {
        match norm {
            PreNorm::Norm(norm) => {
                let norm = self.vector(norm)?;
                steps.push(Step { name: "norm", op: Op::HyperNorm { pending, norm, out: s.mixed } });
                Ok(())
            }
            PreNorm::Mixer(mixer) => {
                let scratch = s.streams.as_ref().expect("the spec has streams, so their buffers were booked");
                self.mixer(mixer, pending, scratch, s.mixed, steps)
            }
        }
    }

    /// Streams to one vector. The final mixer has no `inject`.
    fn mixer(
        &mut self,
        mixer: &Mixer,
        pending: bool,
        s: &StreamScratch,
        mixed: Rows,
        steps: &mut Vec<Step>,
    ) -> Result<(), PlanError> {
        let norm = self.vector(&mixer.norm)?;
        steps.push(Step { name: "hyper_norm", op: Op::HyperNorm { pending, norm, out: s.streams } });
        steps.push(self.matmul("hyper_down", &mixer.down, s.streams, s.low)?);
        let scale = (1.0 / self.spec.streams() as f64) as f32;
        steps.push(Step { name: "hyper_act", op: Op::Act { kind: ActKind::Silu { scale }, a: s.low, out: s.low_act } });
        steps.push(self.matmul("hyper_up", &mixer.up, s.low_act, s.up)?);
        let inject = match &mixer.inject {
            Some(inject) => {
                steps.push(self.matmul("hyper_inject", inject, s.streams, s.inject)?);
                Some(s.inject)
            }
            None => None,
        };
        steps.push(Step { name: "hyper_mix", op: Op::HyperMix { a: s.up, x: s.streams, inject, out: mixed } });
        Ok(())
    }

    fn gdn(
        &mut self,
        layer: usize,
        gdn: &Gdn,
        x: Rows,
        s: &GdnScratch,
        y: Buffer,
        steps: &mut Vec<Step>,
    ) -> Result<(), PlanError> {
        self.modules.insert("gdn".to_owned());
        let spec = &self.spec.gdn;
        let window_bytes = 4 * (spec.conv_taps - 1) * spec.channels();
        let matrix_bytes = 4 * spec.value_heads * spec.head_dim * spec.head_dim;
        let window = self.fixed_state(layer, StateKind::ConvWindow, window_bytes)?;
        let matrix = self.fixed_state(layer, StateKind::Matrix, matrix_bytes)?;
        steps.push(self.matmul("gdn_qkv", &gdn.qkv, x, s.u)?);
        steps.push(self.matmul("gdn_gate", &gdn.gate, x, s.z)?);
        let [first, second] = s.gates_in;
        let gates_in = match &gdn.gates {
            GdnGates::Separate { beta, alpha } => {
                // Betas take the first half of a buffer that could hold both.
                let first = Buffer { row_bytes: second.row_bytes, ..first };
                steps.push(self.matmul("gdn_beta", beta, x, first)?);
                steps.push(self.matmul("gdn_alpha", alpha, x, second)?);
                GatesIn::Separate { beta: first, alpha: second }
            }
            GdnGates::Packed(both) => {
                steps.push(self.matmul("gdn_gates", both, x, first)?);
                GatesIn::Packed(first)
            }
        };
        let (conv, a, dt) = (self.vector(&gdn.conv)?, self.vector(&gdn.a)?, self.vector(&gdn.dt_bias)?);
        let op = Op::GdnConv { u: s.u, gates_in, conv, a, dt, window, y: s.y, gates: s.gates };
        steps.push(Step { name: "gdn_conv", op });
        let op = Op::GdnStep { y: s.y, gates: s.gates, u: s.u, window, matrix, o: s.o };
        steps.push(Step { name: "gdn_step", op });
        let norm = self.vector(&gdn.norm)?;
        steps.push(Step { name: "gdn_norm", op: Op::GdnNorm { o: s.o, z: s.z, norm, out: s.out } });
        steps.push(self.matmul("gdn_out", &gdn.out, s.out, y)?);
        Ok(())
    }

    fn attention(
        &mut self,
        layer: usize,
        attention: &Attention,
        x: Rows,
        s: &AttentionScratch,
        y: Buffer,
        steps: &mut Vec<Step>,
    ) -> Result<(), PlanError> {
        self.modules.insert(format!("attention_{}", self.options.kv.name()));
        let (context, kv_bytes) = (self.options.context, self.options.kv.bytes());
        let row_bytes = self.spec.kv_heads * self.spec.head_dim * kv_bytes;
        let keys = self.row_state(layer, StateKind::Keys, row_bytes, 1)?;
        let values = self.row_state(layer, StateKind::Values, row_bytes, 1)?;
        steps.push(self.matmul("attention_q", &attention.q, x, s.qg)?);
        steps.push(self.matmul("attention_k", &attention.k, x, s.k)?);
        steps.push(self.matmul("attention_v", &attention.v, x, s.v)?);
        let mut sparse = None;
        if let (Some(indexer), Some(index), Some(scratch), LayerKind::Attention { ratio }) =
            (&attention.indexer, &self.spec.indexer, &s.sparse, self.spec.kinds[layer])
        {
            self.modules.insert("select".to_owned());
            steps.push(self.matmul("index_q", &indexer.q_proj, x, scratch.iq_raw)?);
            steps.push(self.matmul("index_k", &indexer.k_proj, x, scratch.ik_raw)?);
            let dim = index.head_dim;
            let max_blocks = (context / ratio).max(1);
            sparse = Some(SparseOp {
                ratio,
                budget: index.budget_tokens / ratio,
                max_blocks,
                iq_raw: scratch.iq_raw,
                ik_raw: scratch.ik_raw,
                iq_norm: self.vector(&indexer.q_norm)?,
                ik_norm: self.vector(&indexer.k_norm)?,
                pooled: self.row_state(layer, StateKind::PooledKeys, dim * kv_bytes, ratio)?,
                tail: self.fixed_state(layer, StateKind::IndexTail, 4 * ratio * dim)?,
                iq: scratch.iq,
                mean: scratch.mean,
                score: scratch.score,
                selected: scratch.selected,
            });
        }
        let op = AttentionOp {
            qg: s.qg,
            k: s.k,
            v: s.v,
            q_norm: self.vector(&attention.q_norm)?,
            k_norm: self.vector(&attention.k_norm)?,
            keys,
            values,
            q: s.q,
            sparse,
            out: s.out,
        };
        steps.push(Step { name: "attention", op: Op::Attention(Box::new(op)) });
        steps.push(self.matmul("attention_output", &attention.output, s.out, y)?);
        Ok(())
    }

    fn dense(
        &mut self,
        [gate, up, down]: [&TensorRef; 3],
        x: Rows,
        s: &DenseScratch,
        y: Buffer,
        steps: &mut Vec<Step>,
    ) -> Result<(), PlanError> {
        steps.push(self.matmul("ffn_gate", gate, x, s.gate)?);
        steps.push(self.matmul("ffn_up", up, x, s.up)?);
        steps.push(Step { name: "ffn_act", op: Op::Act { kind: ActKind::Swiglu { b: s.up }, a: s.gate, out: s.act } });
        steps.push(self.matmul("ffn_down", down, s.act, y)?);
        Ok(())
    }

    fn moe(&mut self, moe: &Moe, x: Rows, s: &MoeScratch, steps: &mut Vec<Step>) -> Result<(), PlanError> {
        self.modules.insert("moe".to_owned());
        steps.push(self.matmul("router", &moe.router, x, s.logits)?);
        let layer = self.experts.len();
        let op = Op::MoeRoute { layer, logits: s.logits, weights: s.weights, plan: s.plan };
        steps.push(Step { name: "moe_route", op });
        let first = self.weights.len();
        steps.push(self.experts((0, "expert_gate"), &moe.gate, x, false, s.gate, s.plan)?);
        steps.push(self.experts((1, "expert_up"), &moe.up, x, false, s.up, s.plan)?);
        steps.push(Step {
            name: "expert_act",
            op: Op::Act { kind: ActKind::Swiglu { b: s.up }, a: s.gate, out: s.act },
        });
        steps.push(self.experts((2, "expert_down"), &moe.down, s.act, true, s.down, s.plan)?);
        self.expert_layer([first, first + 1, first + 2], moe.gate.experts.unwrap_or(1))?;
        steps.push(self.matmul("shared_gate", &moe.shared_gate, x, s.shared_gate)?);
        steps.push(self.matmul("shared_expert_gate", &moe.shared.gate, x, s.shared_a)?);
        steps.push(self.matmul("shared_expert_up", &moe.shared.up, x, s.shared_b)?);
        let op = Op::Act { kind: ActKind::Swiglu { b: s.shared_b }, a: s.shared_a, out: s.shared_act };
        steps.push(Step { name: "shared_act", op });
        steps.push(self.matmul("shared_expert_down", &moe.shared.down, s.shared_act, s.shared_down)?);
        let op = Op::MoeCombine { down: s.down, weights: s.weights, shared: s.shared_down, shared_gate: s.shared_gate };
        steps.push(Step { name: "moe_combine", op });
        Ok(())
    }

    fn ple(
        &mut self,
        layer: usize,
        ple: &Ple,
        s: &PleScratch,
        ngrams: Buffer,
        pending: bool,
        steps: &mut Vec<Step>,
    ) -> Result<(), PlanError> {
        self.modules.insert("ple".to_owned());
        let history = self.spec.ple.as_ref().map_or(0, |spec| spec.history());
        let history = self.fixed_state(layer, StateKind::PleHistory, 4 * history * self.spec.wide())?;
        steps.push(Step { name: "ple_rows", op: Op::Act { kind: ActKind::Copy, a: ngrams, out: s.rows } });
        steps.push(self.matmul("ple_key", &ple.key, s.rows, s.key)?);
        steps.push(self.matmul("ple_value", &ple.value, s.rows, s.value)?);
        let op = Op::Ple {
            pending,
            key: s.key,
            value: s.value,
            norm_key: self.vector(&ple.norm_key)?,
            norm_query: self.vector(&ple.norm_query)?,
            norm_conv: self.vector(&ple.norm_conv)?,
            conv: self.vector(&ple.conv)?,
            n: s.n,
            history,
        };
        steps.push(Step { name: "ple", op });
        Ok(())
    }

    fn matmul(&mut self, name: &'static str, tensor: &TensorRef, x: Rows, y: Buffer) -> Result<Step, PlanError> {
        let (tensor, y, gather) = self.shared(tensor, y)?;
        let weight = self.weight(&tensor)?;
        self.gathers.extend(gather.map(|gather| (weight, gather)));
        Ok(Step { name, op: Op::Matmul { weight, x, y } })
    }

    fn experts(
        &mut self,
        (matrix, name): (usize, &'static str),
        tensor: &TensorRef,
        x: Rows,
        x_per_slot: bool,
        y: Buffer,
        plan: Region,
    ) -> Result<Step, PlanError> {
        let (tensor, y, gather) = self.shared(tensor, y)?;
        let matrix_bytes = packed_bytes(&tensor);
        self.needs(&tensor)?;
        let place = Place::Experts { layer: self.experts.len(), matrix };
        self.weights.push(Weight { tensor, layer: self.layer, place, matrix_bytes });
        let weight = self.weights.len() - 1;
        self.gathers.extend(gather.map(|gather| (weight, gather)));
        Ok(Step { name, op: Op::ExpertMatmul { weight, x, x_per_slot, y, plan } })
    }

    /// Notes where the three matrices of each of a layer's experts will lie.
    fn expert_layer(&mut self, weights: [usize; 3], experts: usize) -> Result<(), PlanError> {
        let [gate, up, down] = weights.map(|weight| self.weights[weight].matrix_bytes.next_multiple_of(64));
        let table = self.ledger.book(ArenaKind::Weights, "expert table", 8 * 3 * experts as u64)?;
        let layer = self.layer.unwrap_or_default();
        let slots = Slab::empty(gate + up + down);
        self.experts.push(ExpertLayer { layer, weights, offsets: [0, gate, gate + up], slots, mirror: None, table });
        Ok(())
    }

    /// The rows of a matrix that this card computes, where they go, and how they are put together with the others'.
    fn shared(
        &mut self,
        tensor: &TensorRef,
        whole: Buffer,
    ) -> Result<(TensorRef, Buffer, Option<GatherPart>), PlanError> {
        let Some(ranges) = self.share.rows(tensor.rows) else { return Ok((tensor.clone(), whole, None)) };
        let mine = ranges[self.share.card].clone();
        let rows_per_token = whole.row_bytes as usize / (4 * tensor.rows);
        let part = match self.parts.get(&whole.region) {
            Some(part) => *part,
            None => {
                let mut book = BufferBook { ledger: &mut self.ledger, chunk: self.options.chunk };
                let part = book.buffer("part", rows_per_token * mine.len())?;
                self.parts.insert(whole.region, part);
                part
            }
        };
        Ok((tensor.rows_of(mine), part, Some(GatherPart { part, whole, rows_per_token, ranges })))
    }

    /// Books a matrix without experts.
    fn weight(&mut self, tensor: &TensorRef) -> Result<usize, PlanError> {
        let matrix_bytes = packed_bytes(tensor);
        let region = self.ledger.book(ArenaKind::Weights, tensor.name(), matrix_bytes)?;
        self.needs(tensor)?;
        self.weights.push(Weight {
            tensor: tensor.clone(),
            layer: self.layer,
            place: Place::Region(region),
            matrix_bytes,
        });
        Ok(self.weights.len() - 1)
    }

    /// Notes the kernels and the codebook of a matrix.
    fn needs(&mut self, tensor: &TensorRef) -> Result<(), PlanError> {
        let format = tensor.format;
        self.modules.insert(format!("matmul_{}", format.name().to_ascii_lowercase()));
        if let Some(table) = codebook(format)
            && !self.codebooks.contains_key(format.name())
        {
            let region = self.ledger.book(ArenaKind::Weights, format.name(), 4 * table.len() as u64)?;
            self.codebooks.insert(format.name(), Codebook { format, region });
        }
        Ok(())
    }

    fn vector(&mut self, values: &VectorRef) -> Result<usize, PlanError> {
        let region = self.ledger.book(ArenaKind::Weights, values.name(), 4 * values.len as u64)?;
        self.vectors.push(Vector { values: values.clone(), layer: self.layer, region });
        Ok(self.vectors.len() - 1)
    }

    fn fixed_state(&mut self, layer: usize, kind: StateKind, bytes: usize) -> Result<usize, PlanError> {
        let bytes = bytes as u64;
        self.state(layer, kind, Extent::Fixed { bytes }, bytes)
    }

    /// Room for the rows of a whole context.
    fn row_state(
        &mut self,
        layer: usize,
        kind: StateKind,
        row_bytes: usize,
        tokens_per_row: usize,
    ) -> Result<usize, PlanError> {
        let row_bytes = row_bytes as u64;
        let rows = (self.options.context / tokens_per_row).max(1) as u64;
        self.state(layer, kind, Extent::Rows { row_bytes, tokens_per_row }, row_bytes * rows)
    }

    fn state(&mut self, layer: usize, kind: StateKind, extent: Extent, bytes: u64) -> Result<usize, PlanError> {
        let region = self.ledger.book(ArenaKind::State, "state", bytes)?;
        self.state.push(StateItem { layer, kind, extent, region });
        Ok(self.state.len() - 1)
    }
}

fn packed_bytes(tensor: &TensorRef) -> u64 {
    Layout::of(tensor.format).matrix_bytes(tensor.rows, tensor.cols) as u64
}
