//! Where a card's experts lie while it works: tables of addresses, swaps between steps, and experts that are read from the file.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::card::CardRun;
use super::{Engine, EngineError};
use crate::device::Event;
use crate::load::{Job, Model, Sources, StreamOptions, stream};
use crate::plan::{CardPlan, Misses, Plan, Region, Split};
use crate::residency::{Counters, Profile, Residency, Shape, Swap};

/// Most bytes of experts that are moved to a card between two steps: what a link carries in a few milliseconds.
const SWAP_BYTES_MAX: u64 = 64 << 20;

/// The experts of a card.
pub(super) struct Experts {
    /// What the device's tables hold, [expert layer][3][experts].
    tables: Vec<Vec<u64>>,
    count: usize,
    /// Unless all are resident on every card.
    residency: Option<Residency>,
    /// Copies on their way to slots, and the event after them.
    in_flight: Option<(Vec<Swap>, Event)>,
    cache: Option<HostCache>,
}

/// Experts that were read from the file, in the card's host slots.
struct HostCache {
    /// (expert layer, expert) of each slot.
    holds: Vec<Option<(usize, usize)>>,
    slot_of: HashMap<(usize, usize), usize>,
    /// When each slot was asked for last.
    used_at: Vec<u64>,
    now: u64,
}

impl HostCache {
    fn new(slots: usize) -> HostCache {
        HostCache { holds: vec![None; slots], slot_of: HashMap::new(), used_at: vec![0; slots], now: 0 }
    }

    /// From here on, slots that are asked for are not given away until the next call.
    fn begin(&mut self) {
        self.now += 1;
    }

    /// The slot of an expert, and whether it has to be read into it.
    fn slot(&mut self, layer: usize, expert: usize) -> (usize, bool) {
        let found = self.slot_of.get(&(layer, expert)).copied();
        let slot = found.unwrap_or_else(|| {
            let oldest = (0..self.used_at.len()).min_by_key(|slot| self.used_at[*slot]).unwrap_or_default();
            assert!(
                self.used_at[oldest] < self.now,
                "the plan books a host slot for every expert that a chunk can choose"
            );
            if let Some(old) = self.holds[oldest].replace((layer, expert)) {
                self.slot_of.remove(&old);
            }
            self.slot_of.insert((layer, expert), oldest);
            oldest
        });
        self.used_at[slot] = self.now;
        (slot, found.is_none())
    }
}

impl Experts {
    /// Places the experts that are resident first. `None`: the card has none.
    pub fn new(run: &CardRun, plan: &Plan, card: &CardPlan, profile: Option<&Profile>) -> Option<Experts> {
        let spec = plan.spec.experts.as_ref().filter(|_| !card.experts.is_empty())?;
        let mut residency = None;
        if plan.misses != Misses::None {
            let slots: Vec<usize> = card.experts.iter().map(|layer| layer.slots.count).collect();
            let own = profile.map(|profile| profile.layers(model_layers(plan, card)));
            residency = Some(Residency::new(shape(plan, card), &slots, own.as_ref()));
        }
        let mut experts = Experts {
            tables: vec![vec![0; 3 * spec.count]; card.experts.len()],
            count: spec.count,
            residency,
            in_flight: None,
            cache: card.host_slots.as_ref().map(|slots| HostCache::new(slots.count)),
        };
        for (layer, layer_plan) in card.experts.iter().enumerate() {
            for expert in 0..spec.count {
                let slot = experts.slot(layer, expert).map(|slot| layer_plan.slots.slot(slot));
                let place = slot.or_else(|| layer_plan.mirror.as_ref().map(|mirror| mirror.slot(expert)));
                if let Some(place) = place {
                    experts.point(layer, layer_plan.offsets, expert, run.address(place));
                }
            }
        }
        Some(experts)
    }

    /// Slot of an expert whose matrices may be read there.
    pub fn slot(&self, layer: usize, expert: usize) -> Option<usize> {
        match &self.residency {
            Some(residency) => residency.resident(layer, expert as u32),
            None => Some(expert),
        }
    }

    pub fn counters(&self) -> Option<&Counters> {
        self.residency.as_ref().map(|residency| residency.counters())
    }

    /// Sets where an expert's matrices are read. Says whether that is a change.
    fn point(&mut self, layer: usize, offsets: [u64; 3], expert: usize, address: u64) -> bool {
        let table = &mut self.tables[layer];
        let mut changed = false;
        for (matrix, offset) in offsets.into_iter().enumerate() {
            let entry = &mut table[matrix * self.count + expert];
            changed |= *entry != address + offset;
            *entry = address + offset;
        }
        changed
    }

    fn table_bytes(&self, layer: usize) -> Vec<u8> {
        self.tables[layer].iter().flat_map(|address| address.to_le_bytes()).collect()
    }
}

/// Expert layers of a card as the model counts its expert layers.
fn model_layers(plan: &Plan, card: &CardPlan) -> Range<usize> {
    let before =
        plan.cards.iter().take_while(|other| plan.split == Split::Layer && other.range.start < card.range.start);
    let first: usize = before.map(|other| other.experts.len()).sum();
    first..first + card.experts.len()
}

fn shape(plan: &Plan, card: &CardPlan) -> Shape {
    let spec = plan.spec.experts.as_ref();
    Shape {
        experts: spec.map_or(0, |experts| experts.count),
        used: spec.map_or(0, |experts| experts.used),
        expert_bytes: card.experts.iter().map(|layer| layer.slots.slot_bytes).collect(),
    }
}

impl CardRun {
    /// Writes all tables to the card.
    pub fn upload_tables(&self, card: &CardPlan) -> Result<(), EngineError> {
        (0..card.experts.len()).try_for_each(|layer| self.upload_table(card, layer))
    }

    fn upload_table(&self, card: &CardPlan, layer: usize) -> Result<(), EngineError> {
        let Some(experts) = &self.experts else { return Ok(()) };
        self.put(card.experts[layer].table, &experts.table_bytes(layer))
    }

    /// What a card's routers chose for `count` tokens, ids [expert layer][token][used].
    fn chosen(
        &self,
        plan: &Plan,
        card: &CardPlan,
        layers: Range<usize>,
        count: usize,
    ) -> Result<Vec<u32>, EngineError> {
        let (Some(region), Some(spec)) = (card.buffers.chosen, &plan.spec.experts) else { return Ok(Vec::new()) };
        let layer_bytes = 4 * count * spec.used;
        let mut bytes = vec![0; layers.len() * layer_bytes];
        let offset = region.offset + (layers.start * layer_bytes) as u64;
        let from = Region { offset, bytes: bytes.len() as u64, ..region };
        self.get(&mut bytes, from)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id)).collect())
    }
}

impl Engine {
    /// Reads the experts that a layer's router chose and that are not resident, and tells the card where they are.
    pub(super) fn fetch_experts(&mut self, card: usize, layer: usize, count: usize) -> Result<(), EngineError> {
        let plan = Arc::clone(&self.plan);
        let card_plan = &plan.cards[card];
        let (Some(sources), run) = (&self.sources, &mut self.cards[card]) else { return Ok(()) };
        // The download waits for all work, so that no kernel reads a slot that is given away.
        let mut wanted = run.chosen(&plan, card_plan, layer..layer + 1, count)?;
        wanted.sort_unstable();
        wanted.dedup();
        let Some(mut experts) = run.experts.take() else { return Ok(()) };
        let fetched = fetch(run, sources, card_plan, &mut experts, layer, &wanted);
        run.experts = Some(experts);
        if fetched? {
            run.upload_table(card_plan, layer)?;
        }
        Ok(())
    }

    /// Counts what the chunks chose, hands the routing on, and moves experts. All queues are at rest.
    pub(super) fn between_steps(&mut self, active: &[(usize, usize)]) -> Result<(), EngineError> {
        let plan = Arc::clone(&self.plan);
        if plan.spec.experts.is_none() || (self.routing.is_none() && plan.misses == Misses::None) {
            return Ok(());
        }
        let stages = plan.stages();
        for (chunk, stage) in active {
            let places = self.inputs.len();
            let count = self.input(*chunk).count;
            if *stage == 0 {
                self.inputs[chunk % places].routes.clear();
            }
            for card in stages[*stage].clone() {
                let card_plan = &plan.cards[card];
                let run = &mut self.cards[card];
                let chosen = run.chosen(&plan, card_plan, 0..card_plan.experts.len(), count)?;
                let layers = chosen.chunks_exact((chosen.len() / card_plan.experts.len().max(1)).max(1));
                if let Some(residency) = run.experts.as_mut().and_then(|experts| experts.residency.as_mut()) {
                    layers.clone().enumerate().for_each(|(layer, ids)| residency.record(layer, ids));
                    residency.end_step(count);
                    swap(run, self.sources.as_ref(), card_plan)?;
                }
                // Cards that divide matrices route alike.
                if card == stages[*stage].start {
                    self.inputs[chunk % places].routes.extend(layers.map(<[u32]>::to_vec));
                }
            }
            if let (Some(sink), true) = (&mut self.routing, *stage + 1 == stages.len()) {
                let inputs = &self.inputs[chunk % places];
                let routes: Vec<&[u32]> = inputs.routes.iter().map(Vec::as_slice).collect();
                sink(inputs.position, count, &routes);
            }
        }
        Ok(())
    }
}

/// Gives experts of a layer host slots and reads those that are not there. Says whether the layer's table has changed.
fn fetch(
    run: &mut CardRun,
    sources: &Sources,
    card: &CardPlan,
    experts: &mut Experts,
    layer: usize,
    wanted: &[u32],
) -> Result<bool, EngineError> {
    let (layer_plan, begin) = (&card.experts[layer], Instant::now());
    let (mut changed, mut jobs, mut places) = (false, Vec::new(), Vec::new());
    if let Some(cache) = &mut experts.cache {
        cache.begin();
    }
    for expert in wanted.iter().map(|expert| *expert as usize) {
        if experts.slot(layer, expert).is_some() {
            continue;
        }
        let (Some(cache), Some(slots)) = (&mut experts.cache, &card.host_slots) else { continue };
        let (slot, missing) = cache.slot(layer, expert);
        let region = slots.slot(slot);
        if missing {
            for (weight, offset) in layer_plan.weights.into_iter().zip(layer_plan.offsets) {
                let bytes = card.weights[weight].matrix_bytes;
                jobs.push((&card.weights[weight].tensor, expert));
                places.push(Region { offset: region.offset + offset, bytes, ..region });
            }
        }
        changed |= experts.point(layer, layer_plan.offsets, expert, run.address(region));
    }
    if !jobs.is_empty() {
        let targets = run.host_parts(&places)?;
        let job = |((tensor, expert), target)| Job { tensor, expert, target: Some(target) };
        let jobs = jobs.into_iter().zip(targets).map(job).collect();
        stream(sources, jobs, StreamOptions::default(), |_| Ok::<(), EngineError>(()))?;
        if let Some(residency) = &mut experts.residency {
            residency.waited(begin.elapsed());
        }
    }
    Ok(changed)
}

/// Ends swaps whose copies are done, and begins others. Nothing on the card reads an expert now.
fn swap(run: &mut CardRun, sources: Option<&Sources>, card: &CardPlan) -> Result<(), EngineError> {
    let Some(mut experts) = run.experts.take() else { return Ok(()) };
    let swapped = swap_experts(run, sources, card, &mut experts);
    run.experts = Some(experts);
    for layer in swapped? {
        run.upload_table(card, layer)?;
    }
    Ok(())
}

/// Returns the layers whose tables have changed.
fn swap_experts(
    run: &mut CardRun,
    sources: Option<&Sources>,
    card: &CardPlan,
    experts: &mut Experts,
) -> Result<Vec<usize>, EngineError> {
    let mut changed = Vec::new();
    if let Some((swaps, event)) = experts.in_flight.take() {
        if !run.named(event.is_done())? {
            experts.in_flight = Some((swaps, event));
            return Ok(changed);
        }
        for swap in swaps {
            let layer = &card.experts[swap.layer];
            experts.point(swap.layer, layer.offsets, swap.expert as usize, run.address(layer.slots.slot(swap.slot)));
            changed.push(swap.layer);
            if let Some(residency) = &mut experts.residency {
                residency.arrived(&swap);
            }
        }
    }
    let Some(residency) = &mut experts.residency else { return Ok(changed) };
    let swaps = residency.choose_swaps(SWAP_BYTES_MAX);
    if swaps.is_empty() {
        return Ok(changed);
    }
    for swap in &swaps {
        let layer = &card.experts[swap.layer];
        let source = match (&layer.mirror, &card.host_slots, sources) {
            (Some(mirror), _, _) => {
                let evicted = run.address(mirror.slot(swap.evicted as usize));
                experts.point(swap.layer, layer.offsets, swap.evicted as usize, evicted);
                changed.push(swap.layer);
                mirror.slot(swap.expert as usize)
            }
            (None, Some(slots), Some(sources)) => {
                if fetch(run, sources, card, experts, swap.layer, &[swap.expert])? {
                    changed.push(swap.layer);
                }
                let cache = experts.cache.as_mut().map(|cache| cache.slot(swap.layer, swap.expert as usize).0);
                slots.slot(cache.unwrap_or_default())
            }
            _ => continue,
        };
        let (to, bytes) = (layer.slots.slot(swap.slot), layer.slots.slot_bytes);
        let (to, from) = (run.span(to, bytes)?, run.span(source, bytes)?);
        run.named(run.copies().copy(&to, &from))?;
        if layer.mirror.is_none() {
            // The host slot may be given away by the next fetch.
            run.named(run.copies().wait())?;
        }
    }
    let event = run.named(run.copies().record())?;
    experts.in_flight = Some((swaps, event));
    changed.sort_unstable();
    changed.dedup();
    Ok(changed)
}

/// The use counts of all layers together.
pub(super) fn profile(model: &Model, plan: &Plan, cards: &[CardRun]) -> Option<Profile> {
    let parts: Option<Vec<Profile>> = cards
        .iter()
        .take(cards_with_all_layers(plan))
        .filter_map(|run| run.experts.as_ref())
        .map(|experts| experts.residency.as_ref().map(Residency::profile))
        .collect();
    // Cards of one plan have experts in equal numbers, so that their counts can be joined.
    parts
        .filter(|parts| !parts.is_empty())
        .and_then(|parts| Profile::join(&super::expert_identity(model), parts.into_iter()).ok())
}

/// Experts of all layers, each with all that cards have of it.
pub(super) fn model_shape(plan: &Plan) -> Option<Shape> {
    let mut whole = shape(plan, &plan.cards[0]);
    for card in &plan.cards[1..] {
        let bytes = shape(plan, card).expert_bytes;
        match plan.split {
            Split::Layer => whole.expert_bytes.extend(bytes),
            Split::Tensor => whole.expert_bytes.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes),
        }
    }
    (!whole.expert_bytes.is_empty()).then_some(whole)
}

/// Cards that have each layer's experts once: those of a tensor split count alike.
fn cards_with_all_layers(plan: &Plan) -> usize {
    match plan.split {
        Split::Layer => plan.cards.len(),
        Split::Tensor => 1,
    }
}
