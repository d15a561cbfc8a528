//! The whole network (N5), one token at a time.

use super::attention::{self, AttentionState, AttentionWeights, Place};
use super::gdn::{self, GdnState, GdnWeights};
use super::linear::{Matrix, matvec};
use super::mix::{PreNormWeights, add_weighted, pre_norm};
use super::moe::FeedForwardWeights;
use super::ple::{self, PleState, PleWeights};
use crate::gguf::GgufFile;
use crate::model::{Block, Bound, KvType, LayerKind, TensorRef};
use crate::quant::decode_row;
use crate::rope::RopeTable;

/// One sequence, with its weights and its state.
pub struct OracleSession<'a> {
    file: &'a GgufFile,
    bound: &'a Bound,
    kv: KvType,
    table: RopeTable,
    layers: Vec<LayerWeights<'a>>,
    final_mix: PreNormWeights<'a>,
    output: Matrix<'a>,
    tokens: Vec<u32>,
    rope: Vec<f32>,
    states: Vec<LayerState>,
}

struct LayerWeights<'a> {
    ple: Option<PleWeights<'a>>,
    block_mix: PreNormWeights<'a>,
    block: BlockWeights<'a>,
    ffn_mix: PreNormWeights<'a>,
    ffn: FeedForwardWeights<'a>,
}

enum BlockWeights<'a> {
    Gdn(GdnWeights<'a>),
    Attention(AttentionWeights<'a>),
}

/// What one layer remembers of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerState {
    pub ple: Option<PleState>,
    pub block: BlockState,
}

/// What the block of a layer remembers.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockState {
    Gdn(GdnState),
    Attention(AttentionState),
}

impl<'a> OracleSession<'a> {
    /// An empty sequence. `bound` has to be bound to `file`.
    pub fn new(file: &'a GgufFile, bound: &'a Bound, kv: KvType) -> OracleSession<'a> {
        let spec = &bound.spec;
        let weights = |layer: &crate::model::Layer| LayerWeights {
            ple: layer.ple.as_ref().map(|ple| PleWeights::new(file, ple)),
            block_mix: PreNormWeights::new(file, &layer.block_mix),
            block: match &layer.block {
                Block::Gdn(gdn) => BlockWeights::Gdn(GdnWeights::new(file, gdn)),
                Block::Attention(attention) => BlockWeights::Attention(AttentionWeights::new(file, attention)),
            },
            ffn_mix: PreNormWeights::new(file, &layer.ffn_mix),
            ffn: FeedForwardWeights::new(file, &layer.ffn),
        };
        let mut session = OracleSession {
            file,
            bound,
            kv,
            table: RopeTable::new(spec.rope_dims, spec.rope_base),
            layers: bound.layers.iter().map(weights).collect(),
            final_mix: PreNormWeights::new(file, &bound.final_mix),
            output: Matrix::new(file, &bound.output),
            tokens: Vec::new(),
            rope: Vec::new(),
            states: Vec::new(),
        };
        session.reset();
        session
    }

    /// Forgets the sequence.
    pub fn reset(&mut self) {
        let spec = &self.bound.spec;
        self.tokens.clear();
        self.states = spec
            .kinds
            .iter()
            .enumerate()
            .map(|(i, kind)| LayerState {
                ple: spec.ple.as_ref().filter(|ple| ple.layer == i).map(|ple| PleState::new(ple, spec.wide())),
                block: match kind {
                    LayerKind::Gdn => BlockState::Gdn(GdnState::new(&spec.gdn)),
                    LayerKind::Attention { .. } => BlockState::Attention(AttentionState::default()),
                },
            })
            .collect();
    }

    /// The tokens so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The state of each layer.
    pub fn states(&self) -> &[LayerState] {
        &self.states
    }

    /// Appends a token and gives the logits for the next one.
    ///
    /// # Panics
    /// When the token is not in the vocabulary.
    pub fn step(&mut self, token: u32) -> Vec<f32> {
        self.step_traced(token, &mut |_, _, _| ())
    }

    /// [`step`](Self::step), showing intermediate values as (name, layer, values) in the order of execution:
    /// `embed`, then for each layer `ple` (the residual after it), `mix`, `weights`, `block`, `ffn_mix`, `ffn_weights`,
    /// `ffn` and `residual`, at last `final_mix`. What belongs to no layer has the number of layers as its layer.
    ///
    /// # Panics
    /// When the token is not in the vocabulary.
    pub fn step_traced(&mut self, token: u32, trace: &mut dyn FnMut(&str, usize, &[f32])) -> Vec<f32> {
        let spec = &self.bound.spec;
        let (streams, eps) = (spec.streams(), spec.rms_eps);
        let used = spec.experts.as_ref().map_or(0, |experts| experts.used);
        assert!((token as usize) < spec.vocab, "token: expected less than {}, found {token}", spec.vocab);
        let position = self.tokens.len();
        self.tokens.push(token);
        let known = self.rope.len() / spec.rope_dims;
        self.rope.extend(self.table.rows(known..known.max(position + 1)));

        let embedded = decoded(self.file, &self.bound.embed, token as usize);
        let mut residual = embedded.repeat(streams);
        trace("embed", spec.layers, &embedded);
        for (i, (w, state)) in self.layers.iter().zip(&mut self.states).enumerate() {
            if let (Some(w), Some(state), Some(ple)) = (&w.ple, &mut state.ple, &spec.ple) {
                let rows = ple.rows(&self.tokens);
                let table = self.bound.ple_table.iter();
                let e: Vec<f32> =
                    table.flat_map(|table| rows.iter().flat_map(|row| decoded(self.file, table, *row))).collect();
                ple::step(ple, w, state, &e, &mut residual, spec.hidden, eps);
                trace("ple", i, &residual);
            }
            let (m, weights) = pre_norm(&w.block_mix, &residual, streams, eps);
            trace("mix", i, &m);
            trace("weights", i, &weights);
            let y = match (&w.block, &mut state.block, spec.kinds[i]) {
                (BlockWeights::Gdn(w), BlockState::Gdn(state), _) => gdn::step(&spec.gdn, w, state, &m, eps),
                (BlockWeights::Attention(w), BlockState::Attention(state), LayerKind::Attention { ratio }) => {
                    let place = Place { position, rope: &self.rope, kv: self.kv };
                    attention::step(spec, ratio, w, state, &m, &place)
                }
                _ => unreachable!("weights and state are made from the same kinds"),
            };
            trace("block", i, &y);
            add_weighted(&mut residual, &weights, &y);

            let (m, weights) = pre_norm(&w.ffn_mix, &residual, streams, eps);
            trace("ffn_mix", i, &m);
            trace("ffn_weights", i, &weights);
            let y = w.ffn.step(used, &m);
            trace("ffn", i, &y);
            add_weighted(&mut residual, &weights, &y);
            trace("residual", i, &residual);
        }
        let (m, _) = pre_norm(&self.final_mix, &residual, streams, eps);
        trace("final_mix", spec.layers, &m);
        matvec(&self.output, &m)
    }
}

/// One row of a table, widened.
fn decoded(file: &GgufFile, table: &TensorRef, row: usize) -> Vec<f32> {
    let mut values = vec![0.0; table.cols];
    decode_row(table.format, &table.row(file, row), &mut values).expect("rows of a bound table are whole blocks");
    values
}
