//! Counting: parameters, bytes read for each token, and the size of a sequence's state.

use std::collections::BTreeMap;

use super::bind::{TensorRef, VectorRef};
use super::layers::{Block, Bound, FeedForward, GdnGates, PreNorm};
use super::spec::{LayerKind, Spec};

/// Parts of the work on one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Experts,
    Gdn,
    Attention,
    HyperConnections,
    FeedForward,
    SharedExperts,
    Router,
    Ple,
    Head,
}

impl Part {
    /// The part's name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Experts => "routed experts",
            Part::Gdn => "gated delta net",
            Part::Attention => "attention",
            Part::HyperConnections => "hyper-connections",
            Part::FeedForward => "feed-forward",
            Part::SharedExperts => "shared experts",
            Part::Router => "router",
            Part::Ple => "n-gram embedding",
            Part::Head => "head",
        }
    }
}

/// Sizes of a model's trunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// Every bound tensor, the embedding and the n-gram table included.
    pub parameters_total: u64,
    /// What one token reads: the used experts and everything dense, with the head and without embedding rows.
    pub parameters_active: u64,
    /// Weight bytes that one token reads, by part.
    pub active_bytes: BTreeMap<Part, u64>,
    /// Bytes of the n-gram table, and of its rows that one token reads; they count as read above.
    pub ngram_table_bytes: u64,
    pub ngram_row_bytes: u64,
    /// Bytes of all bound tensors, by the name of their format.
    pub bytes_by_format: BTreeMap<&'static str, u64>,
    pub state: StateSize,
}

/// Bytes of one sequence's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSize {
    /// Matrices, convolution windows and histories, whatever the length.
    pub fixed: u64,
    /// Keys, values and pooled index keys for each further token, in an f16 cache; the latter are rounded up.
    pub per_token_f16: u64,
    /// The same in an f32 cache.
    pub per_token_f32: u64,
}

impl Census {
    /// Counts a bound model.
    pub fn of(bound: &Bound) -> Census {
        let mut count = Census {
            parameters_total: 0,
            parameters_active: 0,
            active_bytes: BTreeMap::new(),
            ngram_table_bytes: 0,
            ngram_row_bytes: 0,
            bytes_by_format: BTreeMap::new(),
            state: StateSize::of(&bound.spec),
        };
        count.trunk(bound);
        count
    }

    /// All weight bytes that one token reads.
    pub fn active_bytes_total(&self) -> u64 {
        self.active_bytes.values().sum()
    }

    fn trunk(&mut self, bound: &Bound) {
        let spec = &bound.spec;
        self.store(&bound.embed);
        if let Some((table, ple)) = bound.ple_table.as_ref().zip(spec.ple.as_ref()) {
            self.store(table);
            self.ngram_table_bytes = table.bytes();
            self.ngram_row_bytes = (ple.heads() * table.row_bytes()) as u64;
            *self.active_bytes.entry(Part::Ple).or_default() += self.ngram_row_bytes;
        }
        for layer in &bound.layers {
            if let Some(ple) = &layer.ple {
                self.matrices(Part::Ple, [&ple.key, &ple.value]);
                self.vectors(Part::Ple, [&ple.norm_key, &ple.norm_query, &ple.norm_conv, &ple.conv]);
            }
            self.block(&layer.block_mix, &layer.block);
            self.feed_forward(&layer.ffn_mix, &layer.ffn, spec);
        }
        self.pre_norm(Part::Head, &bound.final_mix);
        if bound.output.name() != bound.embed.name() {
            self.store(&bound.output);
        }
        self.read(Part::Head, bound.output.elements(), bound.output.bytes());
    }

    fn block(&mut self, norm: &PreNorm, block: &Block) {
        match block {
            Block::Gdn(gdn) => {
                self.pre_norm(Part::Gdn, norm);
                self.matrices(Part::Gdn, [&gdn.qkv, &gdn.gate, &gdn.out]);
                match &gdn.gates {
                    GdnGates::Separate { beta, alpha } => self.matrices(Part::Gdn, [beta, alpha]),
                    GdnGates::Packed(both) => self.matrices(Part::Gdn, [both]),
                }
                self.vectors(Part::Gdn, [&gdn.conv, &gdn.dt_bias, &gdn.a, &gdn.norm]);
            }
            Block::Attention(a) => {
                self.pre_norm(Part::Attention, norm);
                self.matrices(Part::Attention, [&a.q, &a.k, &a.v, &a.output]);
                self.vectors(Part::Attention, [&a.q_norm, &a.k_norm]);
                if let Some(indexer) = &a.indexer {
                    self.matrices(Part::Attention, [&indexer.q_proj, &indexer.k_proj]);
                    self.vectors(Part::Attention, [&indexer.q_norm, &indexer.k_norm]);
                }
            }
        }
    }

    fn feed_forward(&mut self, norm: &PreNorm, ffn: &FeedForward, spec: &Spec) {
        match ffn {
            FeedForward::Dense(dense) => {
                self.pre_norm(Part::FeedForward, norm);
                self.matrices(Part::FeedForward, [&dense.gate, &dense.up, &dense.down]);
            }
            FeedForward::Moe(moe) => {
                self.pre_norm(Part::Router, norm);
                self.matrices(Part::Router, [&moe.router]);
                let used = spec.experts.as_ref().map_or(0, |experts| experts.used as u64);
                for tensor in [&moe.gate, &moe.up, &moe.down] {
                    self.store(tensor);
                    let (elements, bytes) = (tensor.rows * tensor.cols, tensor.matrix_bytes());
                    self.read(Part::Experts, elements as u64 * used, bytes as u64 * used);
                }
                let shared = &moe.shared;
                self.matrices(Part::SharedExperts, [&moe.shared_gate, &shared.gate, &shared.up, &shared.down]);
            }
        }
    }

    /// A plain norm counts with what it stands before.
    fn pre_norm(&mut self, part: Part, norm: &PreNorm) {
        match norm {
            PreNorm::Mixer(mixer) => {
                self.matrices(Part::HyperConnections, [&mixer.down, &mixer.up].into_iter().chain(&mixer.inject));
                self.vectors(Part::HyperConnections, [&mixer.norm]);
            }
            PreNorm::Norm(norm) => self.vectors(part, [norm]),
        }
    }

    fn matrices<'a>(&mut self, part: Part, tensors: impl IntoIterator<Item = &'a TensorRef>) {
        for tensor in tensors {
            self.store(tensor);
            self.read(part, tensor.elements(), tensor.bytes());
        }
    }

    fn vectors<'a>(&mut self, part: Part, vectors: impl IntoIterator<Item = &'a VectorRef>) {
        for vector in vectors {
            let (elements, bytes) = (vector.info.elements(), vector.info.bytes);
            self.count(vector.format.name(), elements, bytes);
            self.read(part, elements, bytes);
        }
    }

    fn store(&mut self, tensor: &TensorRef) {
        self.count(tensor.format.name(), tensor.elements(), tensor.bytes());
    }

    fn count(&mut self, format: &'static str, elements: u64, bytes: u64) {
        self.parameters_total += elements;
        *self.bytes_by_format.entry(format).or_default() += bytes;
    }

    fn read(&mut self, part: Part, parameters: u64, bytes: u64) {
        self.parameters_active += parameters;
        *self.active_bytes.entry(part).or_default() += bytes;
    }
}

impl StateSize {
    /// The state that a sequence of this model has.
    pub fn of(spec: &Spec) -> StateSize {
        let gdn = &spec.gdn;
        let matrices = gdn.value_width() * gdn.head_dim;
        let window = (gdn.conv_taps - 1) * gdn.channels();
        let history = spec.ple.as_ref().map_or(0, |ple| ple.history() * spec.wide());
        let (mut floats, mut per_token, mut pooled) = (history, 0, 0);
        for kind in &spec.kinds {
            match *kind {
                LayerKind::Gdn => floats += matrices + window,
                LayerKind::Attention { ratio } => {
                    per_token += 2 * spec.kv_heads * spec.head_dim;
                    if let Some(indexer) = spec.indexer.as_ref().filter(|_| ratio > 0) {
                        pooled += indexer.head_dim;
                        // Raw index keys of a block that is not complete.
                        floats += (ratio - 1) * indexer.head_dim;
                    }
                }
            }
        }
        let tokens = spec.ple.as_ref().map_or(0, |ple| (ple.ngram - 1) * size_of::<u32>());
        let ratio = spec.kinds.iter().find_map(|kind| match *kind {
            LayerKind::Attention { ratio } if ratio > 0 => Some(ratio),
            _ => None,
        });
        let growing = |bytes: usize| (per_token * bytes + (pooled * bytes).div_ceil(ratio.unwrap_or(1))) as u64;
        StateSize {
            fixed: (floats * size_of::<f32>() + tokens) as u64,
            per_token_f16: growing(2),
            per_token_f32: growing(4),
        }
    }
}
