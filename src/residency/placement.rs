//! Slots, what they hold, and swaps in two phases; whatever decides which expert is worth a slot.

use super::{Counters, Shape};

/// An expert on its way into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swap {
    pub layer: usize,
    pub slot: usize,
    /// The expert that lost the slot.
    pub evicted: u32,
    /// The expert that gets it.
    pub expert: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host,
    /// A copy is on its way, and the host's is read meanwhile.
    Arriving,
    Slot(usize),
}

#[derive(Debug)]
struct Layer {
    /// [slot]: the expert in it, or on its way there.
    slots: Vec<u32>,
    /// [expert]
    places: Vec<Place>,
    /// [expert]: the step that chose it last, counted from 1; 0 is never.
    last_step: Vec<u64>,
    /// Different experts of the step that was recorded last.
    chosen: Vec<u32>,
    /// That step.
    chosen_step: u64,
}

/// The slots of all layers.
#[derive(Debug)]
pub(super) struct Placement {
    shape: Shape,
    layers: Vec<Layer>,
    counters: Counters,
}

impl Placement {
    /// The experts of the highest ranks, [layer][expert], fill the slots in the order of rank, ties to the lowest id.
    pub fn new(shape: Shape, slots: &[usize], ranks: &[Vec<u64>]) -> Placement {
        let layers = shape.expert_bytes.len();
        assert!(slots.len() == layers && ranks.len() == layers, "slots and ranks are for all {layers} layers");
        let layer = |(slots, ranks): (&usize, &Vec<u64>)| {
            assert!(
                (1..=shape.experts).contains(slots) && ranks.len() == shape.experts,
                "1 slot to one for each expert"
            );
            let mut order: Vec<u32> = (0..shape.experts as u32).collect();
            order.sort_by_key(|expert| std::cmp::Reverse(ranks[*expert as usize]));
            order.truncate(*slots);
            let mut places = vec![Place::Host; shape.experts];
            for (slot, expert) in order.iter().enumerate() {
                places[*expert as usize] = Place::Slot(slot);
            }
            Layer { slots: order, places, last_step: vec![0; shape.experts], chosen: Vec::new(), chosen_step: 0 }
        };
        let layers = slots.iter().zip(ranks).map(layer).collect();
        Placement { shape, layers, counters: Counters::default() }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    pub fn resident(&self, layer: usize, expert: u32) -> Option<usize> {
        match self.layers[layer].places.get(expert as usize) {
            Some(Place::Slot(slot)) => Some(*slot),
            _ => None,
        }
    }

    pub fn expert_in(&self, layer: usize, slot: usize) -> Option<u32> {
        let expert = *self.layers[layer].slots.get(slot)?;
        self.resident(layer, expert).map(|_| expert)
    }

    pub fn record(&mut self, layer: usize, chosen: &[u32]) {
        let step = self.counters.steps + 1;
        let expert_bytes = self.shape.expert_bytes[layer];
        let layer = &mut self.layers[layer];
        if layer.chosen_step != step {
            layer.chosen.clear();
            layer.chosen_step = step;
        }
        for expert in chosen {
            let Some(last_step) = layer.last_step.get_mut(*expert as usize) else { continue };
            if *last_step == step {
                continue;
            }
            *last_step = step;
            layer.chosen.push(*expert);
            if matches!(layer.places[*expert as usize], Place::Slot(_)) {
                self.counters.hits += 1;
            } else {
                self.counters.misses += 1;
                self.counters.miss_bytes = self.counters.miss_bytes.saturating_add(expert_bytes);
            }
        }
    }

    pub fn end_step(&mut self) {
        self.counters.steps += 1;
    }

    /// Begins swaps of at most `max_bytes` after a step. An expert that the step chose gets the slot of the layer's resident
    /// expert of the lowest score, if its own is more than `margin` of that one above it. The greatest difference of scores
    /// comes first, then the lowest layer; equal scores go to the lowest id, and to the lowest slot. `score` is given layer,
    /// expert, and the step that chose it last.
    pub fn choose(
        &mut self,
        max_bytes: u64,
        score: impl Fn(usize, usize, u64) -> u64,
        margin: impl Fn(u64) -> u64,
    ) -> Vec<Swap> {
        let mut best: Vec<Option<(u64, Swap)>> =
            (0..self.layers.len()).map(|layer| self.best(layer, &score, &margin)).collect();
        let mut swaps = Vec::new();
        let mut left = max_bytes;
        loop {
            // A layer whose experts are too large for what is left does not stop the others.
            let fitting = best.iter().flatten().filter(|(_, swap)| self.shape.expert_bytes[swap.layer] <= left);
            let Some((_, swap)) = fitting.min_by_key(|(gain, swap)| (std::cmp::Reverse(*gain), swap.layer)).copied()
            else {
                return swaps;
            };
            let bytes = self.shape.expert_bytes[swap.layer];
            left -= bytes;
            let layer = &mut self.layers[swap.layer];
            layer.slots[swap.slot] = swap.expert;
            layer.places[swap.evicted as usize] = Place::Host;
            layer.places[swap.expert as usize] = Place::Arriving;
            self.counters.swaps += 1;
            self.counters.swap_bytes = self.counters.swap_bytes.saturating_add(bytes);
            swaps.push(swap);
            best[swap.layer] = self.best(swap.layer, &score, &margin);
        }
    }

    /// The best swap of a layer, and the difference of scores.
    fn best(
        &self,
        layer: usize,
        score: &impl Fn(usize, usize, u64) -> u64,
        margin: &impl Fn(u64) -> u64,
    ) -> Option<(u64, Swap)> {
        let state = &self.layers[layer];
        if state.chosen_step != self.counters.steps {
            return None;
        }
        let score = |expert: u32| score(layer, expert as usize, state.last_step[expert as usize]);
        let waiting = state.chosen.iter().filter(|expert| state.places[**expert as usize] == Place::Host);
        let expert = *waiting.min_by_key(|expert| (std::cmp::Reverse(score(**expert)), **expert))?;
        let settled =
            state.slots.iter().enumerate().filter(|(_, held)| state.places[**held as usize] != Place::Arriving);
        let (slot, evicted) = settled.min_by_key(|(slot, held)| (score(**held), *slot))?;
        let (new, old) = (score(expert), score(*evicted));
        let gain = new.checked_sub(old).filter(|gain| *gain > margin(old))?;
        Some((gain, Swap { layer, slot, evicted: *evicted, expert }))
    }

    pub fn arrived(&mut self, swap: &Swap) {
        let Some(layer) = self.layers.get_mut(swap.layer) else { return };
        if layer.slots.get(swap.slot) == Some(&swap.expert) {
            layer.places[swap.expert as usize] = Place::Slot(swap.slot);
        }
    }
}
