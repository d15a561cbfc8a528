//! Making a plan fit: how cards share the work, how many experts each holds, and what to change where something does not fit.

use std::ops::Range;

use super::arena::{ArenaKind, Ledger};
use super::layers::{self, Share};
use super::{
    BankPages, CardFacts, CardPlan, Change, Estimate, Inventory, MemoryTable, Misses, Options, Plan, PlanError,
    RESERVE_BYTES, Split,
};
use crate::model::{Bound, KvType, StateSize};

/// Host memory that stays free beside pinned experts.
const HOST_RESERVE_BYTES: u64 = 1 << 30;
/// Pages of a snapshot, about, and their sizes.
const BANK_PAGES_MIN: u64 = 32;
const BANK_PAGE_BYTES_MIN: u64 = 4 << 10;
const BANK_PAGE_BYTES_MAX: u64 = 1 << 20;
/// Largest budget of snapshots, which no machine has.
const BANK_BYTES_MAX: u64 = 1 << 44;

pub(super) fn fit(bound: &Bound, options: Options, inventory: &Inventory) -> Result<Plan, PlanError> {
    choose(bound, options, inventory).map_err(|mut error| {
        match &mut error {
            PlanError::Memory(table) => {
                let budget = match table.change {
                    Change::ExpertBudget { bytes } => budget_that_fits(bound, options, inventory, bytes),
                    _ => None,
                };
                table.change = match budget {
                    Some(bytes) => Change::ExpertBudget { bytes },
                    None => smallest_change(bound, options, inventory),
                };
            }
            PlanError::Host { change, .. } | PlanError::Piece { change, .. } => {
                *change = smallest_change(bound, options, inventory);
            }
            _ => {}
        }
        let other = options.split.filter(|_| inventory.cards.len() > 1).map(Split::other);
        match other.filter(|other| choose(bound, Options { split: Some(*other), ..options }, inventory).is_ok()) {
            Some(fits) => PlanError::Split { fits, problem: Box::new(error) },
            None => error,
        }
    })
}

/// The plan with the split that was asked for, or else with the better one.
fn choose(bound: &Bound, options: Options, inventory: &Inventory) -> Result<Plan, PlanError> {
    let plan = |split, reason: &str| with_split(bound, options, inventory, split, reason);
    if inventory.cards.len() == 1 {
        return plan(Split::Layer, "one card");
    }
    if let Some(split) = options.split {
        return plan(split, "asked for");
    }
    let usual = if bound.spec.experts.is_some() { Split::Layer } else { Split::Tensor };
    let other = usual.other();
    let kind = if usual == Split::Layer { "mixtures of experts" } else { "dense models" };
    let usual_plan = plan(usual, &format!("the usual one for {kind}; the inventory lacks rates for an estimate"));
    let (usual_plan, other_plan) = match (usual_plan, plan(other, "the other split does not fit")) {
        (Ok(usual), Ok(other)) => (usual, other),
        (Err(_), Ok(other)) => return Ok(other),
        (Ok(mut usual), Err(_)) => {
            usual.split_reason = "the other split does not fit".to_owned();
            return Ok(usual);
        }
        // Either would do, so that the smaller need counts.
        (
            Err(PlanError::HostMemory { least_bytes: usual_bytes, .. }),
            Err(error @ PlanError::HostMemory { least_bytes, .. }),
        ) if least_bytes < usual_bytes => return Err(error),
        (usual, _) => return usual,
    };
    // At half the context: neither an empty nor a full one decides.
    let step = |plan: &Plan| Estimate::of(plan, options.context / 2).step_us;
    let (Some(usual_us), Some(other_us)) = (step(&usual_plan), step(&other_plan)) else { return Ok(usual_plan) };
    let (mut better, better_us, worse, worse_us) = match usual_us <= other_us {
        true => (usual_plan, usual_us, other, other_us),
        false => (other_plan, other_us, usual, usual_us),
    };
    better.split_reason = format!(
        "estimated {:.2} ms a step at half the context, {:.2} ms with the {} split",
        better_us / 1e3,
        worse_us / 1e3,
        worse.name()
    );
    Ok(better)
}

fn with_split(
    bound: &Bound,
    options: Options,
    inventory: &Inventory,
    split: Split,
    reason: &str,
) -> Result<Plan, PlanError> {
    let cards = inventory.cards.len();
    let ranges = match split {
        Split::Layer => partition(bound, options, inventory)?,
        Split::Tensor => vec![0..bound.layers.len(); cards],
    };
    let ledger =
        |card: usize| Ledger::new(inventory.cards[card].allocation_bytes_max, inventory.host.allocation_bytes_max);
    let mut plans = Vec::with_capacity(cards);
    for (card, range) in ranges.into_iter().enumerate() {
        let share = Share { card, cards, split, range };
        let mut plan = layers::plan(bound, options, &share, ledger(card))?;
        bank(bound, options, inventory, card, &mut plan)?;
        slots(bound, options, inventory, card, &mut plan)?;
        plans.push(plan);
    }
    let (misses, chunk) = host(bound, options, inventory, &mut plans)?;
    if chunk < options.chunk {
        return with_split(bound, Options { chunk, ..options }, inventory, split, reason);
    }
    Ok(Plan {
        options,
        spec: bound.spec.clone(),
        inventory: inventory.clone(),
        split,
        split_reason: reason.to_owned(),
        misses,
        cards: plans,
    })
}

/// Layers for each card, so that the fullest card is as little full as it can be.
fn partition(bound: &Bound, options: Options, inventory: &Inventory) -> Result<Vec<Range<usize>>, PlanError> {
    let (layers, cards) = (bound.layers.len(), inventory.cards.len());
    if cards > layers {
        let why = "each card of a layer split has at least one layer";
        return Err(PlanError::Cards { cards, max: layers, why });
    }
    let share = Share { card: 0, cards: 1, split: Split::Layer, range: 0..layers };
    let whole = layers::plan(bound, options, &share, Ledger::new(u64::MAX, u64::MAX))?;
    let experts = bound.spec.experts.as_ref().map_or(0, |experts| experts.count as u64);
    let mut needs = vec![0; layers];
    let every = whole.ledger.bytes(ArenaKind::Buffers) + RESERVE_BYTES;
    let mut head = 0;
    for weight in &whole.weights {
        match (weight.layer, weight.tensor.experts) {
            (Some(layer), None) => needs[layer] += weight.matrix_bytes,
            (Some(layer), Some(_)) => needs[layer] += weight.matrix_bytes * experts,
            (None, _) => head += weight.matrix_bytes,
        }
    }
    for item in &whole.state {
        needs[item.layer] += item.region.bytes;
    }
    let mut sums = vec![0];
    for need in needs {
        sums.push(sums[sums.len() - 1] + need);
    }
    let fullness = |range: Range<usize>, card: usize| {
        let head = if range.end == layers { head } else { 0 };
        (sums[range.end] - sums[range.start] + head + every) as f64 / inventory.cards[card].free_bytes.max(1) as f64
    };
    // best[end]: the fullest of the cards so far when they have the layers before `end`, and where the last one begins.
    let mut best: Vec<(f64, usize)> = (0..=layers).map(|end| (fullness(0..end, 0), 0)).collect();
    let mut begins = Vec::with_capacity(cards);
    for card in 1..cards {
        let next: Vec<(f64, usize)> = (0..=layers)
            .map(|end| {
                let with = |begin: usize| (best[begin].0.max(fullness(begin..end, card)), begin);
                // Earlier cards have a layer each, and so has this one.
                let options = (card..end).map(with);
                options.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
            })
            .collect();
        begins.push(next.iter().map(|(_, begin)| *begin).collect::<Vec<usize>>());
        best = next;
    }
    let mut ends = vec![layers];
    for begin in begins.iter().rev() {
        ends.push(begin[ends[ends.len() - 1]]);
    }
    ends.reverse();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Ok(starts.zip(&ends).map(|(start, end)| start..*end).collect())
}

/// Gives a card the pages for snapshots that the options ask for. A page is small beside a snapshot, and large enough to be
/// copied fast.
fn bank(
    bound: &Bound,
    options: Options,
    inventory: &Inventory,
    card: usize,
    plan: &mut CardPlan,
) -> Result<(), PlanError> {
    let cards = inventory.cards.len() as u64;
    let budgets = [
        (ArenaKind::Bank, options.bank_bytes, options.bank_bytes, inventory.cards[card].free_bytes),
        (ArenaKind::HostBank, options.host_bank_bytes / cards, options.host_bank_bytes, inventory.host.free_bytes),
    ];
    let fixed: u64 = plan.state.iter().map(|item| item.extent.bytes_at(0)).sum();
    let page_bytes = StateSize::of(&bound.spec).fixed / BANK_PAGES_MIN;
    let page_bytes = page_bytes.next_power_of_two().clamp(BANK_PAGE_BYTES_MIN, BANK_PAGE_BYTES_MAX);
    let mut slabs = Vec::with_capacity(2);
    for (kind, bytes, all, free) in budgets {
        let max = free.min(BANK_BYTES_MAX);
        if all > max {
            return Err(PlanError::BankBudget { place: kind.name(), bytes: all, max });
        }
        slabs.push(plan.ledger.book_slab(kind, "snapshots", page_bytes, (bytes / page_bytes) as usize)?);
    }
    let [on_card, on_host] = slabs.try_into().expect("there are two budgets");
    plan.bank = BankPages { on_card, on_host };
    // A snapshot, and the rows of at least one token.
    let least = (fixed.div_ceil(page_bytes) + 1) * page_bytes;
    let bytes = options.bank_bytes + options.host_bank_bytes / cards;
    match options.bank_bytes + options.host_bank_bytes > 0 && (plan.bank.count() as u64 * page_bytes) < least {
        true => Err(PlanError::BankSmall { card, bytes, least }),
        false => Ok(()),
    }
}

/// Gives a card's experts the slots that its memory has room for.
fn slots(
    bound: &Bound,
    options: Options,
    inventory: &Inventory,
    card: usize,
    plan: &mut CardPlan,
) -> Result<(), PlanError> {
    let facts = &inventory.cards[card];
    let table = |experts: u64, change: Change| {
        let number = (inventory.cards.len() > 1).then(|| (card, facts.name.clone()));
        PlanError::Memory(Box::new(MemoryTable {
            card: number,
            weights: plan.ledger.bytes(ArenaKind::Weights),
            experts,
            state: plan.ledger.bytes(ArenaKind::State),
            buffers: plan.ledger.bytes(ArenaKind::Buffers),
            bank: plan.ledger.bytes(ArenaKind::Bank),
            reserve: RESERVE_BYTES,
            free: facts.free_bytes,
            change,
        }))
    };
    let taken = plan.ledger.total(false).saturating_add(RESERVE_BYTES);
    let one_each: u64 = plan.experts.iter().map(|layer| layer.slots.slot_bytes).sum();
    let Some(free) = facts.free_bytes.checked_sub(taken).filter(|free| *free >= one_each) else {
        return Err(table(one_each, Change::None));
    };
    let Some(experts) = &bound.spec.experts else { return Ok(()) };
    let all = one_each * experts.count as u64;
    // Where the card's memory is the host's, the experts of a layer that are read from the file need a place in it too.
    let largest = plan.experts.iter().map(|layer| layer.slots.slot_bytes).max().unwrap_or(0);
    let shared = HOST_RESERVE_BYTES + largest * experts.count as u64 + options.host_bank_bytes;
    let usual = if facts.in_host_memory && all > free { free.saturating_sub(shared).max(one_each) } else { free };
    let wanted = all.min(options.expert_bytes.unwrap_or(usual));
    if wanted > free {
        let whole_mib = free >> 20 << 20;
        let bytes = if whole_mib >= one_each { whole_mib } else { free };
        return Err(table(wanted, Change::ExpertBudget { bytes }));
    }
    if wanted < one_each {
        let whole_mib = one_each.next_multiple_of(1 << 20);
        let bytes = if whole_mib <= free { whole_mib } else { one_each };
        return Err(table(one_each, Change::ExpertBudget { bytes }));
    }
    let each = (wanted / one_each.max(1)) as usize;
    let mut rest = wanted - each as u64 * one_each;
    for layer in &mut plan.experts {
        let slot_bytes = layer.slots.slot_bytes;
        let extra = each < experts.count && rest >= slot_bytes;
        rest -= if extra { slot_bytes } else { 0 };
        let count = each + usize::from(extra);
        layer.slots = plan.ledger.book_slab(ArenaKind::Experts, "expert slots", slot_bytes, count)?;
    }
    Ok(())
}

/// What plans take of the host's memory: pinned, and of the cards whose memory it is.
fn on_host(plans: &[CardPlan], inventory: &Inventory) -> u64 {
    let taken = |(plan, facts): (&CardPlan, &CardFacts)| {
        plan.ledger.total(true) + if facts.in_host_memory { plan.ledger.total(false) } else { 0 }
    };
    plans.iter().zip(&inventory.cards).map(taken).sum()
}

/// Gives the experts without a slot a place in host memory, and says how many tokens can be computed together then.
fn host(
    bound: &Bound,
    options: Options,
    inventory: &Inventory,
    plans: &mut [CardPlan],
) -> Result<(Misses, usize), PlanError> {
    let taken = on_host(plans, inventory);
    if taken > inventory.host.free_bytes {
        let (needed_bytes, free_bytes) = (taken, inventory.host.free_bytes);
        return Err(PlanError::Host { needed_bytes, free_bytes, change: Change::None });
    }
    let Some(experts) = &bound.spec.experts else { return Ok((Misses::None, options.chunk)) };
    let partial = |plan: &CardPlan| plan.experts.iter().any(|layer| layer.slots.count < experts.count);
    if !plans.iter().any(partial) {
        return Ok((Misses::None, options.chunk));
    }
    let host_bytes = inventory.host.free_bytes.saturating_sub(HOST_RESERVE_BYTES.saturating_add(taken));
    let free = host_bytes.min(options.host_expert_bytes.unwrap_or(u64::MAX));
    let mirror_bytes = |plan: &CardPlan| -> u64 {
        let layers = plan.experts.iter().filter(|layer| layer.slots.count < experts.count);
        layers.map(|layer| layer.slots.slot_bytes * experts.count as u64).sum()
    };
    if plans.iter().map(mirror_bytes).sum::<u64>() <= free {
        for plan in plans {
            for layer in plan.experts.iter_mut().filter(|layer| layer.slots.count < experts.count) {
                let slot_bytes = layer.slots.slot_bytes;
                let slab = plan.ledger.book_slab(ArenaKind::HostExperts, "expert mirror", slot_bytes, experts.count)?;
                layer.mirror = Some(slab);
            }
        }
        return Ok((Misses::Mirror, options.chunk));
    }
    let largest = |plan: &CardPlan| plan.experts.iter().map(|layer| layer.slots.slot_bytes).max().unwrap_or(1);
    let sharing = plans.iter().filter(|plan| partial(plan)).count() as u64;
    let mut chunk = options.chunk;
    for plan in plans.iter().filter(|plan| partial(plan)) {
        let count = free / sharing / largest(plan);
        if count < experts.used as u64 {
            // The cards that need it share it evenly.
            let most = plans.iter().filter(|plan| partial(plan)).map(largest).max().unwrap_or(1);
            let least_bytes = sharing * most * experts.used as u64;
            let card_bytes = plans.iter().map(mirror_bytes).sum();
            let budget_bytes = options.host_expert_bytes;
            return Err(PlanError::HostMemory { card_bytes, host_bytes, budget_bytes, least_bytes });
        }
        // All experts that a chunk can choose in a layer have a place at the same time.
        if count < experts.count as u64 {
            chunk = chunk.min(count as usize / experts.used);
        }
    }
    for plan in plans.iter_mut().filter(|plan| partial(plan)) {
        let slot_bytes = largest(plan);
        let most = (plan.experts.len() * experts.count) as u64;
        let count = (free / sharing / slot_bytes).min(most) as usize;
        plan.host_slots = Some(plan.ledger.book_slab(ArenaKind::HostExperts, "expert cache", slot_bytes, count)?);
    }
    Ok((Misses::File, chunk))
}

/// The budget next to `bytes`, which fits one card, that fits all of them.
fn budget_that_fits(bound: &Bound, options: Options, inventory: &Inventory, mut bytes: u64) -> Option<u64> {
    for _ in &inventory.cards {
        match choose(bound, Options { expert_bytes: Some(bytes), ..options }, inventory) {
            Ok(_) => return Some(bytes),
            Err(PlanError::Memory(table)) => match table.change {
                Change::ExpertBudget { bytes: next } => bytes = next,
                _ => return None,
            },
            Err(_) => return None,
        }
    }
    None
}

/// The smallest change of an option that makes a plan fit, if one does.
fn smallest_change(bound: &Bound, options: Options, inventory: &Inventory) -> Change {
    let fits = |options: Options| choose(bound, options, inventory).is_ok();
    // Fewer snapshots cost time alone.
    let most_bytes = |bytes: u64, with: &dyn Fn(u64) -> Options| {
        (bytes > 0 && fits(with(0))).then(|| {
            let (mut to_mib, mut fails_mib) = (0, bytes.div_ceil(1 << 20));
            while fails_mib - to_mib > 1 {
                let mib = to_mib + (fails_mib - to_mib) / 2;
                match fits(with(mib << 20)) {
                    true => to_mib = mib,
                    false => fails_mib = mib,
                }
            }
            to_mib << 20
        })
    };
    if let Some(bytes) = most_bytes(options.bank_bytes, &|bank_bytes| Options { bank_bytes, ..options }) {
        return Change::Bank { bytes };
    }
    let host = most_bytes(options.host_bank_bytes, &|host_bank_bytes| Options { host_bank_bytes, ..options });
    if let Some(bytes) = host {
        return Change::HostBank { bytes };
    }
    // Results do not depend on the chunk, so that it is the first to give way.
    let mut halves = (1..usize::BITS).map(|shift| options.chunk >> shift).take_while(|chunk| *chunk > 0);
    if let Some(to) = halves.find(|chunk| fits(Options { chunk: *chunk, ..options })) {
        return Change::Chunk { from: options.chunk, to };
    }
    // Needs grow with the context, so that bisection finds the longest one that fits.
    let (mut to, mut fails) = (0, options.context);
    while fails - to > 1 {
        let context = to + (fails - to) / 2;
        if fits(Options { context, ..options }) {
            to = context;
        } else {
            fails = context;
        }
    }
    let half = options.context / 2;
    if to < half && options.kv == KvType::F32 && fits(Options { kv: KvType::F16, ..options }) {
        return Change::Kv(KvType::F16);
    }
    if to > 0 { Change::Context { from: options.context, to } } else { Change::None }
}
