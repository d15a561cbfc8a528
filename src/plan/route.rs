//! Which kernels an operation takes, and why.

use std::fmt::Write;

use super::{ActKind, CardPlan, GatherPart, Misses, Op, Options, Plan, Split, Weight};
use crate::model::{LayerKind, Spec};

/// A module of the build and one of its kernels.
pub type Launch = (String, &'static str);

impl Plan {
    /// Whether a step of one token is recorded as a graph: no card waits for another or for the file within it.
    pub fn recorded(&self) -> bool {
        self.split == Split::Layer && self.misses != Misses::File
    }
}

impl CardPlan {
    /// Kernels that a step of one token launches, the head among them.
    pub fn launches(&self) -> usize {
        self.steps().map(|(step, _)| step).chain(&self.head).map(|step| step.op.launches()).sum()
    }

    /// What an operation launches over `rows` tokens, in order.
    pub fn kernels(&self, op: &Op, options: &Options, rows: usize) -> Vec<Launch> {
        let of = |module: &str, kernels: &[&'static str]| {
            kernels.iter().map(|kernel| (module.to_owned(), *kernel)).collect::<Vec<Launch>>()
        };
        match op {
            Op::HyperStart => of("hyper", &["hyper_start"]),
            Op::HyperNorm { .. } => of("hyper", &["hyper_norm"]),
            Op::HyperMix { .. } => of("hyper", &["hyper_mix"]),
            Op::Matmul { weight, .. } | Op::ExpertMatmul { weight, .. } => {
                let kernel = if rows == 1 { "matmul_r1" } else { "matmul_r8" };
                of(&self.weights[*weight].module(), &[kernel])
            }
            Op::Act { kind, .. } => of(
                "act",
                &[match kind {
                    ActKind::Silu { .. } => "act_silu",
                    ActKind::Swiglu { .. } => "act_swiglu",
                    ActKind::Copy => "act_copy",
                }],
            ),
            Op::GdnConv { .. } => of("gdn", &["gdn_conv"]),
            Op::GdnStep { .. } => of("gdn", &["gdn_step"]),
            Op::GdnNorm { .. } => of("gdn", &["gdn_norm"]),
            Op::Attention(op) => {
                let module = format!("attention_{}", options.kv.name());
                let mut all = of(&module, if op.sparse.is_some() { &["index_pool"] } else { &[] });
                all.extend(of(&module, &["attention_prepare"]));
                if op.sparse.is_some() {
                    all.extend(of(&module, &["index_score"]));
                    all.extend(of("select", &["index_select"]));
                }
                all.extend(of(&module, &["attention"]));
                all
            }
            Op::MoeRoute { .. } => of("moe", &["moe_route", "moe_plan"]),
            Op::MoeCombine { .. } => of("moe", &["moe_combine"]),
            Op::Ple { .. } => of("ple", &["ple_gate", "ple_conv"]),
            Op::Gather(_) => Vec::new(),
        }
    }

    /// The matrix of an operation, if it has one.
    pub fn matrix(&self, op: &Op) -> Option<&Weight> {
        match op {
            Op::Matmul { weight, .. } | Op::ExpertMatmul { weight, .. } => Some(&self.weights[*weight]),
            _ => None,
        }
    }

    /// Indices of the vectors of weights that an operation reads.
    pub fn vectors_of(&self, op: &Op) -> Vec<usize> {
        match op {
            Op::HyperNorm { norm, .. } | Op::GdnNorm { norm, .. } => vec![*norm],
            Op::GdnConv { conv, a, dt, .. } => vec![*conv, *a, *dt],
            Op::Attention(op) => {
                let index = op.sparse.as_ref().map(|sparse| [sparse.iq_norm, sparse.ik_norm]);
                [op.q_norm, op.k_norm].into_iter().chain(index.into_iter().flatten()).collect()
            }
            Op::Ple { norm_key, norm_query, norm_conv, conv, .. } => vec![*norm_key, *norm_query, *norm_conv, *conv],
            _ => Vec::new(),
        }
    }

    /// Bytes on the card of the weights that an operation reads; of experts one each.
    pub fn weight_bytes(&self, op: &Op) -> u64 {
        let vectors: u64 = self.vectors_of(op).iter().map(|vector| self.vectors[*vector].region.bytes).sum();
        self.matrix(op).map_or(vectors, |weight| weight.matrix_bytes)
    }

    /// What decides an operation's kernels, in words; empty where there is no choice.
    pub fn reason(&self, op: &Op, spec: &Spec) -> String {
        if let Some(weight) = self.matrix(op) {
            return matrix_reason(weight, spec);
        }
        match op {
            Op::Attention(op) => match &op.sparse {
                None => "dense: every position".to_owned(),
                Some(sparse) => {
                    format!("sparse: the best {} blocks of {} positions, and the open one", sparse.budget, sparse.ratio)
                }
            },
            Op::MoeRoute { .. } => {
                spec.experts.as_ref().map_or(String::new(), |experts| format!("{} of {}", experts.used, experts.count))
            }
            Op::Gather(parts) => {
                let bytes = |of: fn(&GatherPart) -> u64| parts.iter().map(of).sum::<u64>();
                let (out, into) = (bytes(|part| part.part.row_bytes), bytes(|part| part.whole.row_bytes));
                format!("a token's {out} bytes to host memory, {into} from there")
            }
            _ => String::new(),
        }
    }
}

fn matrix_reason(weight: &Weight, spec: &Spec) -> String {
    let tensor = &weight.tensor;
    let mut text = format!("{} {} x {}", tensor.format.name(), tensor.rows, tensor.cols);
    if let Some(stored) = tensor.rows_from.as_ref().map(|map| map.stored).filter(|stored| *stored > tensor.rows) {
        // Writing to a string does not fail.
        let _ = write!(text, ", of {stored} rows");
    }
    if let Some(experts) = spec.experts.as_ref().filter(|_| tensor.experts.is_some()) {
        let _ = write!(text, ", {} experts of {}", experts.used, experts.count);
    }
    if tensor.stored_format() != tensor.format {
        let _ = write!(text, ", {} in the file", tensor.stored_format().name());
    }
    text
}

impl Weight {
    /// The module with the kernels of its format.
    pub fn module(&self) -> String {
        format!("matmul_{}", self.tensor.format.name().to_ascii_lowercase())
    }
}

/// A layer's kind in words.
pub const fn kind_name(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Gdn => "gated delta net",
        LayerKind::Attention { ratio: 0 } => "dense attention",
        LayerKind::Attention { .. } => "sparse attention",
    }
}
