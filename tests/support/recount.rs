//! What a plan must be, counted from the model's shape and from the pieces of the plan.

use std::collections::BTreeMap;
use std::ops::Range;

use bankshot::device::kernels;
use bankshot::plan::{ArenaKind, CardPlan, Misses, Place, Plan, RESERVE_BYTES, Region, Split};
use bankshot::quant::ggml_type_layout;

use super::{Published, Q4_K, mix};

/// Bytes of a matrix as packed: blocks of the file in tiles of 16 rows. Of these formats one has longer blocks then.
fn packed_bytes(ggml_type: u32, rows: u64, columns: u64) -> u64 {
    let (block, bytes) = ggml_type_layout(ggml_type).unwrap();
    let longer = if ggml_type == Q4_K { 4 } else { 0 };
    rows.next_multiple_of(16) * (columns / block) * (bytes + longer)
}

/// What a model has on its cards, if each tensor is on one of them.
#[derive(Default)]
pub struct Counted {
    /// Of matrices without experts by name; rows and bytes.
    pub matrices: BTreeMap<String, (u64, u64)>,
    /// Of vectors.
    vectors: BTreeMap<String, u64>,
    /// Of one expert's three matrices.
    pub expert: u64,
}

pub fn count(model: &Published) -> Counted {
    let mut counted = Counted::default();
    for (name, dims) in model.shape.tensors() {
        let of_tables = ["token_embd.weight", "per_layer_token_embd.weight"].contains(&name.as_str());
        let is_matrix =
            name.ends_with(".weight") && (dims.len() > 1 && !name.contains("conv1d") || name.contains("inp_shexp"));
        let ggml_type = if dims.len() > 1 { mix(model.number, &name) } else { 0 };
        match dims[..] {
            _ if of_tables => {}
            [columns, rows, _] => {
                // The three share their names' beginnings and stand side by side.
                if name.starts_with("blk.0.") {
                    counted.expert += packed_bytes(ggml_type, rows, columns).next_multiple_of(64);
                }
            }
            _ if !is_matrix => {
                counted.vectors.insert(name, 4 * dims.iter().product::<u64>());
            }
            _ => {
                let rows = dims.get(1).copied().unwrap_or(1);
                counted.matrices.insert(name, (rows, packed_bytes(ggml_type, rows, dims[0])));
            }
        }
    }
    counted
}

fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Stored rows of a tensor that a card computes, by the tensor's name, in order.
fn rows_on(card: &CardPlan) -> BTreeMap<String, Vec<Range<usize>>> {
    let mut rows: BTreeMap<String, Vec<Range<usize>>> = BTreeMap::new();
    for weight in &card.weights {
        let all = std::iter::once(0..weight.tensor.rows).collect();
        let ranges = weight.tensor.rows_from.as_ref().map_or(all, |map| map.ranges.clone());
        rows.entry(weight.tensor.name().to_owned()).or_default().extend(ranges);
    }
    rows
}

#[track_caller]
fn assert_covers(mut ranges: Vec<Range<usize>>, rows: u64, what: &str) {
    ranges.sort_by_key(|range| range.start);
    let end = ranges.iter().fold(0, |end, range| {
        assert_eq!(range.start, end, "{what}: {ranges:?}");
        range.end
    });
    assert_eq!(end as u64, rows, "{what}");
}

/// Every tensor is on the card or cards that compute it, with all its rows, once.
pub fn check_tensors(model: &Published, plan: &Plan, what: &str) {
    let counted = count(model);
    let per_card: Vec<_> = plan.cards.iter().map(rows_on).collect();
    for (name, dims) in model.shape.tensors() {
        let what = format!("{what}: {name}");
        let holders: Vec<usize> = (0..per_card.len()).filter(|card| per_card[*card].contains_key(&name)).collect();
        let vectors = plan.cards.iter().map(|card| card.vectors.iter().filter(|v| v.values.name() == name).count());
        let vectors: Vec<usize> = vectors.collect();
        if counted.vectors.contains_key(&name) || name.contains("token_embd") {
            assert!(holders.is_empty(), "{what} is no matrix on a card");
        }
        let owner = plan.cards.iter().position(|card| match layer_of(&name) {
            Some(layer) => card.range.contains(&layer),
            None => card.range.end == model.shape.layers as usize,
        });
        let owners: Vec<usize> = match plan.split {
            Split::Layer => owner.into_iter().collect(),
            Split::Tensor => (0..plan.cards.len()).collect(),
        };
        if counted.vectors.contains_key(&name) {
            let expected: Vec<usize> = (0..plan.cards.len()).map(|card| owners.contains(&card).into()).collect();
            assert_eq!(vectors, expected, "{what}");
        } else if !name.contains("token_embd") {
            assert_eq!(holders, owners, "{what}");
            let rows = dims.get(1).copied().unwrap_or(1);
            let whole = |card: &usize| per_card[*card][&name].iter().map(Range::len).sum::<usize>() as u64 == rows;
            if holders.iter().all(whole) {
                holders.iter().for_each(|card| assert_covers(per_card[*card][&name].clone(), rows, &what));
                assert!(plan.split == Split::Layer || rows < 64, "{what} is worth dividing");
            } else {
                assert_covers(holders.iter().flat_map(|card| per_card[*card][&name].clone()).collect(), rows, &what);
            }
        }
    }
}

/// All pieces of a card that have a name.
fn pieces(card: &CardPlan) -> Vec<(ArenaKind, Region)> {
    let mut pieces = Vec::new();
    let mut add = |kind, region| pieces.push((kind, region));
    for weight in &card.weights {
        if let Place::Region(region) = weight.place {
            add(ArenaKind::Weights, region);
        }
    }
    card.vectors.iter().for_each(|vector| add(ArenaKind::Weights, vector.region));
    card.codebooks.iter().for_each(|codebook| add(ArenaKind::Weights, codebook.region));
    card.state.iter().for_each(|item| add(ArenaKind::State, item.region));
    for layer in &card.experts {
        add(ArenaKind::Weights, layer.table);
        (0..layer.slots.count).for_each(|slot| add(ArenaKind::Experts, layer.slots.slot(slot)));
        if let Some(mirror) = &layer.mirror {
            (0..mirror.count).for_each(|slot| add(ArenaKind::HostExperts, mirror.slot(slot)));
        }
    }
    if let Some(slots) = &card.host_slots {
        (0..slots.count).for_each(|slot| add(ArenaKind::HostExperts, slots.slot(slot)));
    }
    for page in 0..card.bank.count() {
        let kind = if page < card.bank.on_card.count { ArenaKind::Bank } else { ArenaKind::HostBank };
        add(kind, card.bank.page(page));
    }
    for region in card.buffers.staging.iter().flatten() {
        add(ArenaKind::Staging, *region);
    }
    pieces
}

/// A plan fits its inventory, by a count of its pieces.
pub fn check_memory(plan: &Plan, what: &str) {
    let mut on_host = 0;
    for (number, (card, facts)) in plan.cards.iter().zip(&plan.inventory.cards).enumerate() {
        let what = format!("{what}, card {number}");
        let mut by_arena = vec![Vec::new(); card.ledger.arenas.len()];
        for (kind, region) in pieces(card) {
            assert_eq!(card.ledger.arenas[region.arena].0, kind, "{what}");
            by_arena[region.arena].push(region);
        }
        for ((kind, bytes), mut regions) in card.ledger.arenas.iter().zip(by_arena) {
            let host = matches!(kind, ArenaKind::HostExperts | ArenaKind::HostBank | ArenaKind::Staging);
            let max = if host { plan.inventory.host.allocation_bytes_max } else { facts.allocation_bytes_max };
            assert!(*bytes <= max.min(4_000_000_000) && *bytes > 0, "{what}: {kind:?} arena of {bytes} bytes");
            regions.sort_by_key(|region| region.offset);
            for pair in regions.windows(2) {
                assert!(pair[0].offset + pair[0].bytes <= pair[1].offset, "{what}: {pair:?} overlap");
            }
            let last = regions.last().map_or(*bytes, |region| region.offset + region.bytes);
            assert!(last <= *bytes, "{what}: a piece ends at {last} of {bytes}");
            let sum: u64 = regions.iter().map(|region| region.bytes.next_multiple_of(256)).sum();
            assert!(*kind == ArenaKind::Buffers || sum == *bytes, "{what}: {kind:?} has {sum} of {bytes} bytes in use");
        }
        let arenas = |host: bool| -> u64 {
            let of = card.ledger.arenas.iter().filter(|(kind, _)| {
                matches!(kind, ArenaKind::HostExperts | ArenaKind::HostBank | ArenaKind::Staging) == host
            });
            of.map(|(_, bytes)| bytes).sum()
        };
        assert!(arenas(false) + RESERVE_BYTES <= facts.free_bytes, "{what}");
        on_host += arenas(true) + if facts.in_host_memory { arenas(false) } else { 0 };
        check_slots(plan, number, facts.free_bytes - RESERVE_BYTES - arenas(false), &what);
    }
    // Beside pinned experts some of it stays free.
    let reserve = if plan.misses == Misses::None { 0 } else { 1 << 30 };
    assert!(on_host + reserve <= plan.inventory.host.free_bytes, "{what}: {on_host} bytes on the host");
}

/// As many experts are resident as fit, and the others are where the plan says.
fn check_slots(plan: &Plan, number: usize, left: u64, what: &str) {
    let card = &plan.cards[number];
    let Some(experts) = &plan.spec.experts else {
        assert!(card.experts.is_empty(), "{what}");
        return;
    };
    assert_eq!(card.experts.len(), card.range.len(), "{what}");
    let least = card.experts.iter().map(|layer| layer.slots.count).min().unwrap();
    for layer in &card.experts {
        let count = layer.slots.count;
        assert!(count >= 1 && count <= experts.count && count <= least + 1, "{what}: {count} slots");
        // What the host holds too has to leave room for experts that are read.
        let limited = plan.options.expert_bytes.is_some() || plan.inventory.cards[number].in_host_memory;
        let may_grow = count == least && count < experts.count && !limited;
        assert!(!may_grow || left < layer.slots.slot_bytes, "{what}: {left} bytes are left for another slot");
        let mirrored = plan.misses == Misses::Mirror && count < experts.count;
        assert_eq!(layer.mirror.as_ref().map(|mirror| mirror.count), mirrored.then_some(experts.count), "{what}");
    }
    let partial = least < experts.count;
    assert_eq!(card.host_slots.is_some(), partial && plan.misses == Misses::File, "{what}");
    if let Some(slots) = &card.host_slots {
        // All that a chunk can choose.
        let chosen = (plan.options.chunk * experts.used).min(experts.count);
        assert!(slots.count >= chosen, "{what}: {} slots for {chosen} experts", slots.count);
    }
    assert!(!partial || plan.misses != Misses::None, "{what}");
}

/// Kernels that a step names exist and are as many as it counts.
pub fn check_kernels(plan: &Plan, what: &str) {
    for card in &plan.cards {
        for op in card.steps().map(|(step, _)| step).chain(&card.head).map(|step| &step.op) {
            for rows in [1, 2] {
                let named = card.kernels(op, &plan.options, rows);
                assert_eq!(named.len(), op.launches(), "{what}: {op:?}");
                for (module, kernel) in named {
                    assert!(card.modules.contains(&module), "{what}: {module}");
                    assert!(kernels::find(&module).unwrap().kernels.contains(&kernel), "{what}: {module} {kernel}");
                }
            }
        }
    }
}

/// Bytes of all cards are those of the model, counted from its header.
pub fn check_bytes(model: &Published, plan: &Plan, what: &str) {
    let (counted, shape, layers) = (count(model), &model.shape, model.shape.layers as usize);
    let slot = counted.expert.next_multiple_of(256);
    let align = |bytes: u64| bytes.next_multiple_of(256);
    let tables = if shape.arch == "qwen35" { 0 } else { align(24 * u64::from(shape.experts[0])) };
    let sum = |kind| plan.cards.iter().map(|card| card.ledger.bytes(kind)).sum::<u64>();
    let books: u64 = plan.cards.iter().flat_map(|card| &card.codebooks).map(|book| align(book.region.bytes)).sum();
    let vectors: u64 = counted.vectors.values().map(|bytes| align(*bytes)).sum();
    let cards = plan.cards.len() as u64;
    let matrices: u64 = counted.matrices.values().map(|(_, bytes)| align(*bytes)).sum();
    // What every card of a tensor split has.
    let whole: u64 = counted.matrices.values().filter(|(rows, _)| *rows < 64).map(|(_, bytes)| align(*bytes)).sum();
    let expected = match plan.split {
        Split::Layer => matrices + vectors + layers as u64 * tables,
        Split::Tensor => matrices + (cards - 1) * whole + cards * (vectors + layers as u64 * tables),
    };
    assert_eq!(sum(ArenaKind::Weights) - books, expected, "{what}: weights");
    if plan.misses == Misses::None && shape.arch != "qwen35" {
        assert_eq!(sum(ArenaKind::Experts), layers as u64 * u64::from(shape.experts[0]) * slot, "{what}: experts");
    }
    let context = plan.options.context as u64;
    let [kv_heads, dim, ratio] = [shape.heads[1], shape.head_dim, shape.indexer[3]].map(u64::from);
    let [key_heads, value_heads] = shape.gdn_heads.map(u64::from);
    let gdn = 4 * value_heads * 128 * 128 + align(4 * 3 * (2 * key_heads + value_heads) * 128);
    let cache = 2 * align(2 * context * kv_heads * dim);
    let indexed = shape.arch == "qwen4exp";
    let index = if indexed { align(2 * context / ratio * 128) + 4 * ratio * 128 } else { 0 };
    let past = u64::from((shape.ple.taps - 1) * shape.ple.ngram * shape.streams[0] * shape.hidden) * 4;
    let attention = (0..layers as u64).filter(|layer| layer % 4 == 3).count() as u64;
    let state = (layers as u64 - attention) * gdn + attention * (cache + index) + if indexed { align(past) } else { 0 };
    let copies = if plan.split == Split::Layer { 1 } else { cards };
    assert_eq!(sum(ArenaKind::State), copies * state, "{what}: state");
}

pub fn check_layers(model: &Published, plan: &Plan, what: &str) {
    let layers = model.shape.layers as usize;
    let mut ranges: Vec<Range<usize>> = plan.cards.iter().map(|card| card.range.clone()).collect();
    if plan.split == Split::Tensor {
        assert!(ranges.iter().all(|range| *range == (0..layers)), "{what}");
        ranges.truncate(1);
    }
    assert_covers(ranges, layers as u64, what);
    for card in &plan.cards {
        assert!(card.layers.iter().map(|layer| layer.index).eq(card.range.clone()), "{what}");
        assert_eq!(card.buffers.embedded.is_some(), card.range.start == 0, "{what}");
        assert_eq!(card.start.len(), usize::from(card.range.start == 0), "{what}");
    }
    let logits = plan.cards.iter().map(|card| card.logit_range.clone()).filter(|range| !range.is_empty());
    assert_covers(logits.collect(), model.shape.vocab.into(), what);
}
