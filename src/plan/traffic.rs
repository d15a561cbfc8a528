//! What one operation reads and writes, from the plan alone.

use super::{ActKind, AttentionOp, Buffer, CardPlan, GatesIn, Op, Options, Rows};
use crate::model::Spec;
use crate::quant::Format;

/// Bytes and products of one operation over a window of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Of the weights as the file has them.
    pub weight_bytes: u64,
    /// Of weights as they lie on the device, of activations and of state: each thing once, however often it is touched.
    pub bytes: u64,
    /// Multiplications with a weight.
    pub products: u64,
    /// Format, rows and columns of the matrix.
    pub matrix: Option<(Format, usize, usize)>,
}

/// Counts an operation of a card over `count` tokens, the first of which stands at `position`. `experts`: different ones that the layer's router chose.
pub fn traffic(
    (spec, options, plan): (&Spec, &Options, &CardPlan),
    op: &Op,
    count: usize,
    position: usize,
    experts: usize,
) -> Traffic {
    let tokens = count as u64;
    let buffers = &plan.buffers;
    let rows_of = |list: &[Buffer]| tokens * list.iter().map(|buffer| buffer.row_bytes).sum::<u64>();
    let state = |list: &[usize]| list.iter().map(|item| plan.state[*item].region.bytes).sum::<u64>();
    let all = |rows: Rows| [rows.x, rows.q, rows.d, rows.s];
    let pending = |pending: bool| if pending { rows_of(&[buffers.output, buffers.stream_weights]) } else { 0 };
    let vectors = |list: &[usize]| list.iter().map(|vector| plan.vectors[*vector].values.info.bytes).sum::<u64>();
    let plain = |vector_list: &[usize], bytes: u64| {
        let weight_bytes = vectors(vector_list);
        Traffic { weight_bytes, bytes: weight_bytes + bytes, ..Traffic::default() }
    };
    let matmul = |weight: usize, matrices: u64, uses: u64, x: Rows, y: Buffer| {
        let weight = &plan.weights[weight];
        let tensor = &weight.tensor;
        let x = if tensor.format.is_quantised() { rows_of(&[x.q, x.d, x.s]) } else { rows_of(&[x.x]) };
        Traffic {
            weight_bytes: matrices * (tensor.rows * tensor.stored_row_bytes()) as u64,
            bytes: matrices * weight.matrix_bytes + x + rows_of(&[y]),
            products: tokens * uses * (tensor.rows * tensor.cols) as u64,
            matrix: Some((tensor.format, tensor.rows, tensor.cols)),
        }
    };
    match op {
        Op::HyperStart => {
            plain(&[], rows_of(&[buffers.residual]) + buffers.embedded.map_or(0, |buffer| rows_of(&[buffer])))
        }
        Op::HyperNorm { pending: adds, norm, out } => {
            plain(&[*norm], pending(*adds) + rows_of(&[buffers.residual]) + rows_of(&all(*out)))
        }
        Op::Matmul { weight, x, y } => matmul(*weight, 1, 1, *x, *y),
        Op::ExpertMatmul { weight, x, y, .. } => {
            let used = spec.experts.as_ref().map_or(0, |experts| experts.used as u64);
            matmul(*weight, experts as u64, used, *x, *y)
        }
        Op::Act { kind, a, out } => {
            let second = if let ActKind::Swiglu { b } = kind { rows_of(&[*b]) } else { 0 };
            plain(&[], second + rows_of(&[*a]) + rows_of(&all(*out)))
        }
        Op::HyperMix { a, x, inject, out } => {
            let weights = inject.map_or(0, |inject| rows_of(&[inject, buffers.stream_weights]));
            plain(&[], weights + rows_of(&[*a, x.x]) + rows_of(&all(*out)))
        }
        Op::GdnConv { u, gates_in, conv, a, dt, window, y, gates } => {
            let gates_in = match *gates_in {
                GatesIn::Separate { beta, alpha } => rows_of(&[beta, alpha]),
                GatesIn::Packed(both) => rows_of(&[both]),
            };
            plain(&[*conv, *a, *dt], gates_in + rows_of(&[*u, *y, *gates]) + state(&[*window]))
        }
        Op::GdnStep { y, gates, matrix, o, .. } => plain(&[], rows_of(&[*y, *gates, *o]) + state(&[*matrix])),
        Op::GdnNorm { o, z, norm, out } => plain(&[*norm], rows_of(&[*o, *z]) + rows_of(&all(*out))),
        Op::Attention(op) => attention((spec, options), op, count, position, &plain, &rows_of),
        // The ids take as many bytes as the weights.
        Op::MoeRoute { logits, weights, .. } => plain(&[], rows_of(&[*logits, *weights, *weights])),
        Op::MoeCombine { down, weights, shared, shared_gate } => {
            plain(&[], rows_of(&[*down, *weights, *shared, *shared_gate, buffers.output]))
        }
        Op::Ple { pending: adds, key, value, norm_key, norm_query, norm_conv, conv, n, history } => plain(
            &[*norm_key, *norm_query, *norm_conv, *conv],
            pending(*adds) + rows_of(&[buffers.residual, *key, *value, *n]) + state(&[*history]),
        ),
        Op::Gather(parts) => plain(&[], parts.iter().map(|part| rows_of(&[part.part, part.whole])).sum()),
    }
}

fn attention(
    (spec, options): (&Spec, &Options),
    op: &AttentionOp,
    tokens: usize,
    position: usize,
    plain: &dyn Fn(&[usize], u64) -> Traffic,
    rows_of: &dyn Fn(&[Buffer]) -> u64,
) -> Traffic {
    let value_bytes = options.kv.bytes();
    let position_bytes = (2 * spec.kv_heads * spec.head_dim * value_bytes) as u64;
    let activations = rows_of(&[op.qg, op.k, op.v, op.q, op.out.x, op.out.q, op.out.d, op.out.s]);
    let seen = (position + tokens) as u64;
    let (Some(sparse), Some(indexer)) = (&op.sparse, &spec.indexer) else {
        return plain(&[op.q_norm, op.k_norm], activations + seen * position_bytes);
    };
    // Different tokens may select different blocks, but no more than there are.
    let selected = (tokens * (sparse.budget + 1) * sparse.ratio) as u64;
    let pooled = seen / sparse.ratio as u64 * (indexer.head_dim * value_bytes) as u64;
    let index = rows_of(&[sparse.iq_raw, sparse.ik_raw, sparse.iq]);
    let vectors = [op.q_norm, op.k_norm, sparse.iq_norm, sparse.ik_norm];
    plain(&vectors, activations + index + pooled + seen.min(selected) * position_bytes)
}
