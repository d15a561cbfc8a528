//! Buffers of activations that all layers share; each is written anew by every layer.

use super::layers::{plan_entries_max, plan_slots_at};
use super::steps::{Buffer, BufferBook, Rows};
use super::{Options, PlanError, ROWS_PER_GROUP, Region};
use crate::model::{ExpertSpec, HyperConnectionSpec, LayerKind, PleSpec, Spec};

pub(super) struct Scratch {
    pub streams: Option<StreamScratch>,
    pub mixed: Rows,
    pub gdn: Option<GdnScratch>,
    pub attention: Option<AttentionScratch>,
    pub moe: Option<MoeScratch>,
    pub dense: Option<DenseScratch>,
    pub ple: Option<PleScratch>,
}

/// Of models with several residual streams.
pub(super) struct StreamScratch {
    pub streams: Rows,
    pub low: Buffer,
    pub low_act: Rows,
    pub up: Buffer,
    pub inject: Buffer,
}

pub(super) struct DenseScratch {
    pub gate: Buffer,
    pub up: Buffer,
    pub act: Rows,
}

pub(super) struct GdnScratch {
    pub u: Buffer,
    pub z: Buffer,
    /// Betas, or betas and alphas together; alphas.
    pub gates_in: [Buffer; 2],
    pub y: Buffer,
    pub gates: Buffer,
    pub o: Buffer,
    pub out: Rows,
}

pub(super) struct AttentionScratch {
    pub qg: Buffer,
    pub k: Buffer,
    pub v: Buffer,
    pub q: Buffer,
    pub out: Rows,
    pub sparse: Option<SparseScratch>,
}

pub(super) struct SparseScratch {
    pub iq_raw: Buffer,
    pub ik_raw: Buffer,
    pub iq: Buffer,
    pub mean: Region,
    pub score: Buffer,
    pub selected: Buffer,
}

pub(super) struct MoeScratch {
    pub logits: Buffer,
    pub weights: Buffer,
    pub plan: Region,
    pub gate: Buffer,
    pub up: Buffer,
    pub act: Rows,
    pub down: Buffer,
    pub shared_gate: Buffer,
    pub shared_a: Buffer,
    pub shared_b: Buffer,
    pub shared_act: Rows,
    pub shared_down: Buffer,
}

pub(super) struct PleScratch {
    pub rows: Rows,
    pub key: Buffer,
    pub value: Buffer,
    pub n: Buffer,
}

impl Scratch {
    /// Books what layers of these kinds need, and the n-gram embedding if one of them has it.
    pub fn book(
        book: &mut BufferBook<'_>,
        spec: &Spec,
        options: Options,
        kinds: &[LayerKind],
        ple: bool,
    ) -> Result<Scratch, PlanError> {
        let streams = spec.hyper_connections.as_ref().map(|connections| stream_scratch(book, spec, connections));
        let moe = spec.experts.as_ref().map(|experts| moe_scratch(book, spec, experts, options));
        Ok(Scratch {
            streams: streams.transpose()?,
            mixed: book.rows("mixed", spec.hidden)?,
            gdn: gdn_scratch(book, spec, kinds)?,
            attention: attention_scratch(book, spec, options, kinds)?,
            moe: moe.transpose()?,
            dense: spec.dense_ff.map(|ff| dense_scratch(book, ff)).transpose()?,
            ple: spec.ple.as_ref().filter(|_| ple).map(|ple| ple_scratch(book, spec, ple)).transpose()?,
        })
    }
}

fn stream_scratch(
    book: &mut BufferBook<'_>,
    spec: &Spec,
    connections: &HyperConnectionSpec,
) -> Result<StreamScratch, PlanError> {
    Ok(StreamScratch {
        streams: book.rows("streams", spec.wide())?,
        low: book.buffer("low", connections.low_rank)?,
        low_act: book.rows("low_act", connections.low_rank)?,
        up: book.buffer("up", spec.wide())?,
        inject: book.buffer("inject", connections.streams)?,
    })
}

fn dense_scratch(book: &mut BufferBook<'_>, ff: usize) -> Result<DenseScratch, PlanError> {
    Ok(DenseScratch {
        gate: book.buffer("ffn_gate", ff)?,
        up: book.buffer("ffn_up", ff)?,
        act: book.rows("ffn_act", ff)?,
    })
}

fn gdn_scratch(book: &mut BufferBook<'_>, spec: &Spec, kinds: &[LayerKind]) -> Result<Option<GdnScratch>, PlanError> {
    if !kinds.contains(&LayerKind::Gdn) {
        return Ok(None);
    }
    let gdn = &spec.gdn;
    Ok(Some(GdnScratch {
        u: book.buffer("gdn_u", gdn.channels())?,
        z: book.buffer("gdn_z", gdn.value_width())?,
        gates_in: [book.buffer("gdn_beta", 2 * gdn.value_heads)?, book.buffer("gdn_alpha", gdn.value_heads)?],
        y: book.buffer("gdn_y", gdn.channels())?,
        gates: book.buffer("gdn_gates", 2 * gdn.value_heads)?,
        o: book.buffer("gdn_o", gdn.value_width())?,
        out: book.rows("gdn_out", gdn.value_width())?,
    }))
}

fn attention_scratch(
    book: &mut BufferBook<'_>,
    spec: &Spec,
    options: Options,
    kinds: &[LayerKind],
) -> Result<Option<AttentionScratch>, PlanError> {
    if kinds.iter().all(|kind| *kind == LayerKind::Gdn) {
        return Ok(None);
    }
    let (width, kv_width) = (spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim);
    let ratios = kinds.iter().filter_map(|kind| match kind {
        LayerKind::Attention { ratio } if *ratio > 0 => Some(*ratio),
        _ => None,
    });
    let sparse = match ratios.min().zip(spec.indexer.as_ref()) {
        Some((ratio, index)) => {
            let (heads, dim) = (index.heads, index.head_dim);
            Some(SparseScratch {
                iq_raw: book.buffer("index_q_raw", heads * dim)?,
                ik_raw: book.buffer("index_k_raw", dim)?,
                iq: book.buffer("index_q", heads * dim)?,
                mean: book.region("index_mean", 4 * (options.chunk / ratio + 2) * dim)?,
                score: book.buffer("index_score", (options.context / ratio).max(1))?,
                selected: book.buffer("index_selected", index.budget_tokens / ratio)?,
            })
        }
        None => None,
    };
    Ok(Some(AttentionScratch {
        qg: book.buffer("attention_qg", 2 * width)?,
        k: book.buffer("attention_k", kv_width)?,
        v: book.buffer("attention_v", kv_width)?,
        q: book.buffer("attention_q", width)?,
        out: book.rows("attention_out", width)?,
        sparse,
    }))
}

fn moe_scratch(
    book: &mut BufferBook<'_>,
    spec: &Spec,
    e: &ExpertSpec,
    options: Options,
) -> Result<MoeScratch, PlanError> {
    // The plan of single rows has the most entries: one a slot.
    let entries = plan_entries_max(options.chunk, e.used, e.count, ROWS_PER_GROUP).max(e.used);
    let plan_words = plan_slots_at(entries) + options.chunk * e.used;
    Ok(MoeScratch {
        logits: book.buffer("router_logits", e.count)?,
        weights: book.buffer("expert_weights", e.used)?,
        plan: book.region("expert_plan", 4 * plan_words)?,
        gate: book.buffer("expert_gate", e.used * e.ff)?,
        up: book.buffer("expert_up", e.used * e.ff)?,
        act: book.rows("expert_act", e.used * e.ff)?,
        down: book.buffer("expert_down", e.used * spec.hidden)?,
        shared_gate: book.buffer("shared_gate", 1)?,
        shared_a: book.buffer("shared_expert_gate", e.shared_ff)?,
        shared_b: book.buffer("shared_expert_up", e.shared_ff)?,
        shared_act: book.rows("shared_act", e.shared_ff)?,
        shared_down: book.buffer("shared_expert_down", spec.hidden)?,
    })
}

fn ple_scratch(book: &mut BufferBook<'_>, spec: &Spec, ple: &PleSpec) -> Result<PleScratch, PlanError> {
    Ok(PleScratch {
        rows: book.rows("ple_rows", ple.width())?,
        key: book.buffer("ple_key", spec.wide())?,
        value: book.buffer("ple_value", spec.hidden)?,
        n: book.buffer("ple_n", spec.wide())?,
    })
}
