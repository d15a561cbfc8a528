//! Turning a plan's steps into launches: regions become addresses, indices become kernels.

use std::collections::HashMap;

use super::EngineError;
use crate::device::{DeviceError, Kernel, Queue, sys};
use crate::model::{GdnGate, HeadOrder};
use crate::ops;
use crate::plan::{
    ActKind, AttentionOp, Buffer, CardPlan, GatesIn, Op, Place, Plan, ROWS_PER_GROUP, Region, Rows, Step,
    plan_entries_max, plan_slots_at,
};

/// Consecutive tokens of the chunk that a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub first: usize,
    pub count: usize,
}

/// Kernels by module and name.
#[derive(Debug, Default)]
pub(super) struct Kernels(HashMap<(String, &'static str), Kernel>);

impl Kernels {
    pub fn insert(&mut self, module: &str, name: &'static str, kernel: Kernel) {
        self.0.insert((module.to_owned(), name), kernel);
    }

    /// Tells a recording that it uses all of them.
    pub fn keep(&self, queue: &Queue) {
        for kernel in self.0.values() {
            queue.keep_kernel(kernel);
        }
    }

    fn get(&self, module: &str, name: &'static str) -> Result<*mut sys::xk_kernel, EngineError> {
        let kernel = self.0.iter().find(|((m, n), _)| m == module && *n == name).map(|(_, kernel)| kernel.raw());
        kernel.ok_or_else(|| EngineError::Kernel { module: module.to_owned(), kernel: name })
    }
}

/// What a card's launches need besides the step: its plan, where its arenas start, and the kernels.
pub(super) struct Launcher<'a> {
    pub plan: &'a Plan,
    pub number: usize,
    /// First address of each arena of the ledger.
    pub arenas: &'a [u64],
    pub kernels: &'a Kernels,
    pub queue: &'a Queue,
}

fn c(value: f64) -> f32 {
    value as f32
}

impl Launcher<'_> {
    fn card(&self) -> &CardPlan {
        &self.plan.cards[self.number]
    }

    /// Launches one step over a window of the chunk.
    pub fn step(&self, step: &Step, layer: Option<usize>, window: Window) -> Result<(), EngineError> {
        self.launch(&step.op, window).map_err(|error| match error {
            EngineError::Device(problem) => EngineError::Step { op: step.name, layer, card: self.number, problem },
            other => other,
        })
    }

    fn region<T>(&self, region: Region) -> *mut T {
        std::ptr::with_exposed_provenance_mut((self.arenas[region.arena] + region.offset) as usize)
    }

    fn at<T>(&self, buffer: Buffer, window: Window) -> *mut T {
        let address = self.arenas[buffer.region.arena] + buffer.region.offset + buffer.row_bytes * window.first as u64;
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    fn rows(&self, rows: Rows, window: Window) -> sys::xk_rows {
        sys::xk_rows {
            x: self.at(rows.x, window),
            q: self.at(rows.q, window),
            d: self.at(rows.d, window),
            s: self.at(rows.s, window),
        }
    }

    fn vector(&self, index: usize) -> *const f32 {
        self.region(self.card().vectors[index].region)
    }

    fn state<T>(&self, index: usize) -> *mut T {
        self.region(self.card().state[index].region)
    }

    fn pending(&self, pending: bool, window: Window) -> (*const f32, *const f32) {
        let buffers = &self.card().buffers;
        if pending {
            let one_stream = self.plan.spec.hyper_connections.is_none();
            let weights = if one_stream { std::ptr::null_mut() } else { self.at(buffers.stream_weights, window) };
            (self.at(buffers.output, window), weights)
        } else {
            (std::ptr::null(), std::ptr::null())
        }
    }

    fn launch(&self, op: &Op, window: Window) -> Result<(), EngineError> {
        let spec = &self.plan.spec;
        let buffers = &self.card().buffers;
        let tokens = window.count as u32;
        let (streams, hidden) = (spec.streams() as u32, spec.hidden as u32);
        let inv_hidden = c(1.0 / spec.hidden as f64);
        let eps = spec.rms_eps;
        // SAFETY: every address comes from a region that the plan booked with the operation's shapes, in arenas that the engine holds.
        let result: Result<(), DeviceError> = unsafe {
            match op {
                Op::HyperStart => ops::hyper_start(
                    self.queue,
                    sys::xk_hyper_start_args {
                        tokens,
                        streams,
                        hidden,
                        kernel: self.kernels.get("hyper", "hyper_start")?,
                        x: buffers.embedded.map_or(std::ptr::null_mut(), |buffer| self.at(buffer, window)),
                        r: self.at(buffers.residual, window),
                        ..Default::default()
                    },
                ),
                Op::HyperNorm { pending, norm, out } => {
                    let (y, weights) = self.pending(*pending, window);
                    ops::hyper_norm(
                        self.queue,
                        sys::xk_hyper_norm_args {
                            tokens,
                            streams,
                            hidden,
                            inv_hidden,
                            eps,
                            kernel: self.kernels.get("hyper", "hyper_norm")?,
                            r: self.at(buffers.residual, window),
                            y,
                            weights,
                            norm: self.vector(*norm),
                            out: self.rows(*out, window),
                            ..Default::default()
                        },
                    )
                }
                Op::HyperMix { a, x, inject, out } => ops::hyper_mix(
                    self.queue,
                    sys::xk_hyper_mix_args {
                        tokens,
                        streams,
                        hidden,
                        inv_streams: c(1.0 / f64::from(streams)),
                        kernel: self.kernels.get("hyper", "hyper_mix")?,
                        a: self.at(*a, window),
                        x: self.at(x.x, window),
                        inject: inject.map_or(std::ptr::null_mut(), |inject| self.at::<f32>(inject, window)),
                        weights: self.at(buffers.stream_weights, window),
                        out: self.rows(*out, window),
                        ..Default::default()
                    },
                ),
                Op::Matmul { weight, x, y } => return self.matmul(*weight, *x, *y, window),
                Op::ExpertMatmul { weight, x, x_per_slot, y, plan } => {
                    return self.experts(*weight, *x, *x_per_slot, *y, *plan, window);
                }
                Op::Act { kind, a, out } => return self.act(*kind, *a, *out, window),
                Op::GdnConv { u, gates_in, conv, a, dt, window: conv_window, y, gates } => {
                    let heads = spec.gdn.value_heads as u32;
                    let group = heads / spec.gdn.key_heads as u32;
                    let (beta, alpha, gate_group, gate_stride, gate_row): (*const f32, *const f32, _, _, _) =
                        match *gates_in {
                            GatesIn::Separate { beta, alpha } => {
                                (self.at(beta, window), self.at(alpha, window), heads, 0, heads)
                            }
                            GatesIn::Packed(both) => {
                                let first: *const f32 = self.at(both, window);
                                (first, first.wrapping_add(group as usize), group, 2 * group, 2 * heads)
                            }
                        };
                    ops::gdn_conv(
                        self.queue,
                        sys::xk_gdn_conv_args {
                            tokens,
                            key_heads: spec.gdn.key_heads as u32,
                            value_heads: spec.gdn.value_heads as u32,
                            taps: spec.gdn.conv_taps as u32,
                            eps,
                            gate_group,
                            gate_stride,
                            gate_row,
                            kernel: self.kernels.get("gdn", "gdn_conv")?,
                            u: self.at(*u, window),
                            window: self.state(*conv_window),
                            conv: self.vector(*conv),
                            beta,
                            alpha,
                            ssm_a: self.vector(*a),
                            dt: self.vector(*dt),
                            y: self.at(*y, window),
                            gates: self.at(*gates, window),
                            ..Default::default()
                        },
                    )
                }
                Op::GdnStep { y, gates, u, window: conv_window, matrix, o } => ops::gdn_step(
                    self.queue,
                    sys::xk_gdn_step_args {
                        tokens,
                        key_heads: spec.gdn.key_heads as u32,
                        value_heads: spec.gdn.value_heads as u32,
                        taps: spec.gdn.conv_taps as u32,
                        scale: c(1.0 / (spec.gdn.head_dim as f64).sqrt()),
                        grouped: u32::from(spec.gdn.heads == HeadOrder::Grouped),
                        kernel: self.kernels.get("gdn", "gdn_step")?,
                        y: self.at(*y, window),
                        gates: self.at(*gates, window),
                        u: self.at(*u, window),
                        window: self.state(*conv_window),
                        state: self.state(*matrix),
                        o: self.at(*o, window),
                        ..Default::default()
                    },
                ),
                Op::GdnNorm { o, z, norm, out } => ops::gdn_norm(
                    self.queue,
                    sys::xk_gdn_norm_args {
                        rows: tokens * spec.gdn.value_heads as u32,
                        inv_head: c(1.0 / spec.gdn.head_dim as f64),
                        eps,
                        silu: u32::from(spec.gdn.gate == GdnGate::Silu),
                        kernel: self.kernels.get("gdn", "gdn_norm")?,
                        o: self.at(*o, window),
                        z: self.at(*z, window),
                        norm: self.vector(*norm),
                        out: self.rows(*out, window),
                        ..Default::default()
                    },
                ),
                Op::Attention(op) => return self.attention(op, window),
                Op::MoeRoute { layer, logits, weights, plan } => {
                    let (rows_per_group, slots_at, _) = self.expert_plan(window);
                    ops::moe_route(
                        self.queue,
                        sys::xk_moe_route_args {
                            tokens,
                            experts: self.expert_counts().0 as u32,
                            used: self.expert_counts().1 as u32,
                            rows_per_group,
                            slots_at,
                            route: self.kernels.get("moe", "moe_route")?,
                            plan_kernel: self.kernels.get("moe", "moe_plan")?,
                            logits: self.at(*logits, window),
                            chosen: self.chosen(*layer, window),
                            weights: self.at(*weights, window),
                            plan: self.region(*plan),
                            ..Default::default()
                        },
                    )
                }
                Op::MoeCombine { down, weights, shared, shared_gate } => ops::moe_combine(
                    self.queue,
                    sys::xk_moe_combine_args {
                        tokens,
                        used: self.expert_counts().1 as u32,
                        hidden,
                        kernel: self.kernels.get("moe", "moe_combine")?,
                        down: self.at(*down, window),
                        weights: self.at(*weights, window),
                        shared: self.at(*shared, window),
                        shared_gate: self.at(*shared_gate, window),
                        y: self.at(buffers.output, window),
                        ..Default::default()
                    },
                ),
                // The engine exchanges between cards; a launcher knows one.
                Op::Gather(_) => return Ok(()),
                Op::Ple { pending, key, value, norm_key, norm_query, norm_conv, conv, n, history } => {
                    let (y, weights) = self.pending(*pending, window);
                    let ple = spec.ple.as_ref().map_or((0, 0), |ple| (ple.conv_taps as u32, ple.ngram as u32));
                    ops::ple(
                        self.queue,
                        sys::xk_ple_args {
                            tokens,
                            streams,
                            hidden,
                            taps: ple.0,
                            dilation: ple.1,
                            inv_hidden,
                            inv_sqrt_hidden: c(1.0 / (spec.hidden as f64).sqrt()),
                            eps,
                            gate: self.kernels.get("ple", "ple_gate")?,
                            conv_kernel: self.kernels.get("ple", "ple_conv")?,
                            r: self.at(buffers.residual, window),
                            y,
                            weights,
                            key: self.at(*key, window),
                            value: self.at(*value, window),
                            norm_key: self.vector(*norm_key),
                            norm_query: self.vector(*norm_query),
                            norm_conv: self.vector(*norm_conv),
                            conv: self.vector(*conv),
                            n: self.at(*n, window),
                            history: self.state(*history),
                            ..Default::default()
                        },
                    )
                }
            }
        };
        Ok(result?)
    }

    /// Experts of a layer, and how many of them a token uses.
    fn expert_counts(&self) -> (usize, usize) {
        self.plan.spec.experts.as_ref().map_or((0, 0), |experts| (experts.count, experts.used))
    }

    /// Where the router of the card's expert layer `layer` leaves what it chose, i32 [token][used].
    fn chosen(&self, layer: usize, window: Window) -> *mut i32 {
        let region = self.card().buffers.chosen.expect("the plan has a router, so its ids have a place");
        let ids = layer * window.count * self.expert_counts().1;
        let address = self.arenas[region.arena] + region.offset + 4 * ids as u64;
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Rows a group, place of the slots and most entries of the expert plan over a window.
    fn expert_plan(&self, window: Window) -> (u32, u32, u32) {
        let (experts, used) = self.expert_counts();
        let rows = if window.count == 1 { 1 } else { ROWS_PER_GROUP };
        let entries = plan_entries_max(window.count, used, experts, rows);
        (rows as u32, plan_slots_at(entries) as u32, entries as u32)
    }

    fn matmul_args(&self, weight: usize, rows: usize) -> Result<sys::xk_matmul_args, EngineError> {
        let weight = &self.card().weights[weight];
        let format = weight.tensor.format;
        let module = format!("matmul_{}", format.name().to_ascii_lowercase());
        let codebook = self.card().codebooks.iter().find(|codebook| codebook.format == format);
        let rows_per_group = if rows == 1 { 1 } else { ROWS_PER_GROUP };
        Ok(sys::xk_matmul_args {
            n: weight.tensor.rows as u32,
            k: weight.tensor.cols as u32,
            rows: rows as u32,
            rows_per_group: rows_per_group as u32,
            kernel: self.kernels.get(&module, if rows_per_group == 1 { "matmul_r1" } else { "matmul_r8" })?,
            weights: match weight.place {
                Place::Region(region) => self.region(region),
                Place::Experts { .. } => std::ptr::null(),
            },
            experts: match weight.place {
                Place::Region(_) => std::ptr::null(),
                Place::Experts { layer, matrix } => {
                    let table: *const u64 = self.region(self.card().experts[layer].table);
                    table.wrapping_add(matrix * self.expert_counts().0)
                }
            },
            codebook: codebook
                .map_or(std::ptr::null_mut(), |codebook| self.region::<std::ffi::c_void>(codebook.region)),
            ..Default::default()
        })
    }

    fn matmul(&self, weight: usize, x: Rows, y: Buffer, window: Window) -> Result<(), EngineError> {
        let mut args = self.matmul_args(weight, window.count)?;
        args.x = self.rows(x, window);
        // Logits have a buffer of the window's own length.
        let to = if Some(y) == self.card().buffers.logits { Window { first: 0, ..window } } else { window };
        args.y = self.at(y, to);
        // SAFETY: as in `launch`.
        Ok(unsafe { ops::matmul(self.queue, args) }?)
    }

    fn experts(
        &self,
        weight: usize,
        x: Rows,
        x_per_slot: bool,
        y: Buffer,
        plan: Region,
        window: Window,
    ) -> Result<(), EngineError> {
        let (_, slots_at, max_entries) = self.expert_plan(window);
        let mut args = self.matmul_args(weight, window.count)?;
        args.x = self.rows(x, window);
        args.y = self.at(y, window);
        args.plan = self.region(plan);
        args.max_entries = max_entries;
        args.slots_at = slots_at;
        args.x_div = if x_per_slot { 1 } else { self.expert_counts().1 as u32 };
        // SAFETY: as in `launch`.
        Ok(unsafe { ops::matmul(self.queue, args) }?)
    }

    fn act(&self, kind: ActKind, a: Buffer, out: Rows, window: Window) -> Result<(), EngineError> {
        let mut args = sys::xk_act_args {
            elements: (out.columns * window.count) as u64,
            a: self.at(a, window),
            out: self.rows(out, window),
            ..Default::default()
        };
        let name = match kind {
            ActKind::Silu { scale } => {
                args.kind = sys::XK_ACT_SILU;
                args.scale = scale;
                "act_silu"
            }
            ActKind::Swiglu { b } => {
                args.kind = sys::XK_ACT_SWIGLU;
                args.b = self.at(b, window);
                "act_swiglu"
            }
            ActKind::Copy => {
                args.kind = sys::XK_ACT_COPY;
                "act_copy"
            }
        };
        args.kernel = self.kernels.get("act", name)?;
        // SAFETY: as in `launch`.
        Ok(unsafe { ops::act(self.queue, args) }?)
    }

    fn attention(&self, op: &AttentionOp, window: Window) -> Result<(), EngineError> {
        let spec = &self.plan.spec;
        let module = format!("attention_{}", self.plan.options.kv.name());
        let buffers = &self.card().buffers;
        let mut args = sys::xk_attention_args {
            tokens: window.count as u32,
            heads: spec.heads as u32,
            kv_heads: spec.kv_heads as u32,
            ratio: 1,
            rope_dims: spec.rope_dims as u32,
            eps: spec.rms_eps,
            inv_head_dim: c(1.0 / spec.head_dim as f64),
            scale: c(1.0 / (spec.head_dim as f64).sqrt()),
            prepare: self.kernels.get(&module, "attention_prepare")?,
            attend: self.kernels.get(&module, "attention")?,
            start: self.region(buffers.start),
            table: self.region(buffers.rope),
            qg: self.at(op.qg, window),
            k: self.at(op.k, window),
            v: self.at(op.v, window),
            q_norm: self.vector(op.q_norm),
            k_norm: self.vector(op.k_norm),
            k_cache: self.state(op.keys),
            v_cache: self.state(op.values),
            q: self.at(op.q, window),
            out: self.rows(op.out, window),
            ..Default::default()
        };
        if let (Some(sparse), Some(indexer)) = (&op.sparse, &spec.indexer) {
            args.index_heads = indexer.heads as u32;
            args.index_dim = indexer.head_dim as u32;
            args.ratio = sparse.ratio as u32;
            args.budget = sparse.budget as u32;
            args.max_blocks = sparse.max_blocks as u32;
            args.inv_index_dim = c(1.0 / indexer.head_dim as f64);
            args.inv_ratio = c(1.0 / sparse.ratio as f64);
            // A prompt has enough groups by its tokens; a single token spreads its blocks.
            args.score_groups = if window.count == 1 { 64.min(sparse.max_blocks.div_ceil(8) as u32) } else { 4 };
            args.pool = self.kernels.get(&module, "index_pool")?;
            args.score_kernel = self.kernels.get(&module, "index_score")?;
            args.select = self.kernels.get("select", "index_select")?;
            args.iq_raw = self.at(sparse.iq_raw, window);
            args.ik_raw = self.at(sparse.ik_raw, window);
            args.iq_norm = self.vector(sparse.iq_norm);
            args.ik_norm = self.vector(sparse.ik_norm);
            args.pooled = self.state(sparse.pooled);
            args.tail = self.state(sparse.tail);
            args.iq = self.at(sparse.iq, window);
            args.mean = self.region(sparse.mean);
            args.score = self.at(sparse.score, window);
            args.selected = self.at(sparse.selected, window);
        }
        // SAFETY: as in `launch`.
        Ok(unsafe { ops::attention(self.queue, args) }?)
    }
}
