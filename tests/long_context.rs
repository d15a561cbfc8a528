//! The last positions of the longest context: block numbers, positions and addresses of attention against the reference.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/test_device.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod test_device;

use bankshot::device::{Span, sys};
use bankshot::model::KvType;
use bankshot::ops;
use bankshot::oracle::attention::{attend, gated, pool, scores, select};
use bankshot::oracle::linear::quantise;
use bankshot::oracle::sums::{rms_norm, rope};
use bankshot::rope::RopeTable;
use random::Random;
use test_device::TestDevice;

/// The longest context of published models.
const CONTEXT: usize = 262_144;
const TOKENS: usize = 5;
const HEADS: usize = 2;
const DIM: usize = 256;
const ROPE: usize = 64;
const EPS: f32 = 1e-6;
/// Of the selection: heads, their width, tokens a block, blocks that are selected.
const INDEX: (usize, usize, usize, usize) = (2, 128, 4, 24);

/// Values as the cache keeps them, and their bytes.
fn cached(values: &mut [f32], kv: KvType) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * kv.bytes());
    for value in values {
        *value = kv.round(*value);
        match kv {
            KvType::F16 => bytes.extend(half::f16::from_f32(*value).to_le_bytes()),
            KvType::F32 => bytes.extend(value.to_le_bytes()),
        }
    }
    bytes
}

fn norm_rope(x: &[f32], norm: &[f32], row: &[f32]) -> Vec<f32> {
    let mut y = rms_norm(x, norm, EPS);
    rope(&mut y, row);
    y
}

/// Attends from the last `TOKENS` positions of a context of `context`, with one head of keys, and compares with the reference.
fn check(context: usize, sparse: bool, kv: KvType) {
    let device = TestDevice::new();
    let mut random = Random(context as u64);
    let (index_heads, index_dim, ratio, budget) = INDEX;
    let start = context - TOKENS;
    let mut keys = random.vector(start * DIM);
    let mut values = random.vector(start * DIM);
    let mut pooled = random.vector(start / ratio * index_dim);
    let mut cache = [cached(&mut keys, kv), cached(&mut values, kv), cached(&mut pooled, kv)];
    for (bytes, values) in cache.iter_mut().zip([context * DIM, context * DIM, context / ratio * index_dim]) {
        bytes.resize(values * kv.bytes(), 0);
    }
    // Raw index keys of the block that is open when the chunk begins.
    let open = start % ratio;
    let mut raw = random.vector(open * index_dim);
    let mut tail = vec![0.0; ratio * index_dim];
    tail[..raw.len()].copy_from_slice(&raw);

    let table = RopeTable::new(ROPE, 1e7).rows(0..context);
    let [qg, k, v] = [2 * HEADS * DIM, DIM, DIM].map(|width| random.vector(TOKENS * width));
    let [iq_raw, ik_raw] = [index_heads * index_dim, index_dim].map(|width| random.vector(TOKENS * width));
    let [q_norm, k_norm] = [DIM; 2].map(|n| random.vector(n));
    let [iq_norm, ik_norm] = [index_dim; 2].map(|n| random.vector(n));

    let module = format!("attention_{}", kv.name());
    let kernels =
        ["index_pool", "attention_prepare", "index_score", "attention"].map(|name| device.kernel(&module, name));
    let select_kernel = device.kernel("select", "index_select");
    let floats = |values: &[f32]| device.floats(values);
    let empty = |n: usize| device.put(&vec![0; 4 * n]);
    let max_blocks = context / ratio;
    let caches = cache.map(|bytes| device.put(&bytes));
    let inputs =
        [&table, &qg, &k, &v, &q_norm, &k_norm, &iq_raw, &ik_raw, &iq_norm, &ik_norm, &tail].map(|x| floats(x));
    let position = device.put(&(start as i32).to_le_bytes());
    let width = HEADS * DIM;
    let scratch: [Span; 5] = [
        TOKENS * width,
        TOKENS * index_heads * index_dim,
        (TOKENS / ratio + 2) * index_dim,
        TOKENS * max_blocks,
        TOKENS * budget,
    ]
    .map(empty);
    let out = [TOKENS * width, TOKENS * width / 4, TOKENS * width / 32, TOKENS * width / 32].map(empty);
    let inverse = |n: usize| (1.0 / n as f64) as f32;
    let mut args = sys::xk_attention_args {
        tokens: TOKENS as u32,
        heads: HEADS as u32,
        kv_heads: 1,
        ratio: 1,
        rope_dims: ROPE as u32,
        eps: EPS,
        inv_head_dim: inverse(DIM),
        scale: (1.0 / (DIM as f64).sqrt()) as f32,
        prepare: kernels[1].raw(),
        attend: kernels[3].raw(),
        start: position.ptr().cast(),
        table: inputs[0].ptr().cast(),
        qg: inputs[1].ptr().cast(),
        k: inputs[2].ptr().cast(),
        v: inputs[3].ptr().cast(),
        q_norm: inputs[4].ptr().cast(),
        k_norm: inputs[5].ptr().cast(),
        k_cache: caches[0].ptr().cast(),
        v_cache: caches[1].ptr().cast(),
        q: scratch[0].ptr().cast(),
        out: sys::xk_rows {
            x: out[0].ptr().cast(),
            q: out[1].ptr().cast(),
            d: out[2].ptr().cast(),
            s: out[3].ptr().cast(),
        },
        ..Default::default()
    };
    if sparse {
        args = sys::xk_attention_args {
            index_heads: index_heads as u32,
            index_dim: index_dim as u32,
            ratio: ratio as u32,
            budget: budget as u32,
            max_blocks: max_blocks as u32,
            inv_index_dim: inverse(index_dim),
            inv_ratio: inverse(ratio),
            score_groups: 4,
            pool: kernels[0].raw(),
            score_kernel: kernels[2].raw(),
            select: select_kernel.raw(),
            iq_raw: inputs[6].ptr().cast(),
            ik_raw: inputs[7].ptr().cast(),
            iq_norm: inputs[8].ptr().cast(),
            ik_norm: inputs[9].ptr().cast(),
            tail: inputs[10].ptr().cast(),
            pooled: caches[2].ptr().cast(),
            iq: scratch[1].ptr().cast(),
            mean: scratch[2].ptr().cast(),
            score: scratch[3].ptr().cast(),
            selected: scratch[4].ptr().cast(),
            ..args
        };
    }
    // SAFETY: all addresses are of live spans with the shapes of the arguments.
    unsafe { ops::attention(&device.queue, args) }.unwrap();
    let found = device.get(&out[0]);
    let found_q = device.get(&out[1]);

    for t in 0..TOKENS {
        let position = start + t;
        let row = |position: usize| &table[position * ROPE..][..ROPE];
        let round = |x: Vec<f32>| x.into_iter().map(|x| kv.round(x)).collect::<Vec<f32>>();
        keys.extend(round(norm_rope(&k[t * DIM..][..DIM], &k_norm, row(position))));
        values.extend(round(v[t * DIM..][..DIM].to_vec()));
        raw.extend(&ik_raw[t * index_dim..][..index_dim]);
        let seen = position + 1;
        if seen.is_multiple_of(ratio) {
            pooled.extend(round(norm_rope(&pool(&raw, index_dim), &ik_norm, row(seen - ratio))));
            raw.clear();
        }
        let visible: Vec<usize> = if sparse {
            let queries: Vec<f32> = iq_raw[t * index_heads * index_dim..][..index_heads * index_dim]
                .chunks(index_dim)
                .flat_map(|query| norm_rope(query, &iq_norm, row(position)))
                .collect();
            let chosen = select(&scores(&queries, &pooled, index_dim), budget);
            assert!(chosen.iter().any(|block| *block > max_blocks / 2), "a block of the far half is selected");
            let tail = seen / ratio * ratio..seen;
            chosen.into_iter().flat_map(|block| block * ratio..(block + 1) * ratio).chain(tail).collect()
        } else {
            (0..seen).collect()
        };
        let expected: Vec<f32> = (0..HEADS)
            .flat_map(|head| {
                let (q, gate) = qg[(t * HEADS + head) * 2 * DIM..][..2 * DIM].split_at(DIM);
                gated(&attend(&norm_rope(q, &q_norm, row(position)), &keys, &values, DIM, &visible), gate)
            })
            .collect();
        let bits: Vec<u32> = expected.iter().map(|x| x.to_bits()).collect();
        assert!(found[t * width..][..width] == bits, "position {position}, sparse {sparse}, {kv:?} cache");
        let q: Vec<u8> = quantise(&expected).q.as_flattened().iter().map(|q| *q as u8).collect();
        let q: Vec<u32> = q.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        assert!(found_q[t * width / 4..][..width / 4] == q, "codes at position {position}");
    }
}

#[test]
fn sparse_attention_is_right_at_the_far_end() {
    for kv in [KvType::F16, KvType::F32] {
        check(CONTEXT, true, kv);
    }
}

#[test]
fn dense_attention_is_right_at_the_far_end() {
    check(CONTEXT, false, KvType::F16);
}
