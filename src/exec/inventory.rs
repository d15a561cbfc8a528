//! The inventory of real cards: what is free now, and how fast memory and links are when measured.

use std::time::Instant;

use super::EngineError;
use crate::device::{self, Arena, Card, DeviceError, MemoryKind, Queue, Span};
use crate::plan::{ARENA_BYTES_MAX, CardFacts, HostFacts, Inventory, Plan, Rate, RateSource};

/// Bytes that a rate is measured with.
const MEASURED_BYTES: u64 = 64 << 20;
/// Repetitions, the fastest of which counts.
const REPETITIONS: usize = 5;

/// What the cards have free now, without rates. Parts of one device share its memory.
pub fn inventory(cards: &[Card]) -> Inventory {
    let host_free = device::host_free_bytes().unwrap_or(u64::MAX);
    let facts = |card: &Card| {
        let info = card.info();
        let sharing = cards.iter().filter(|other| other.info().index == info.index).count() as u64;
        let free = card.free_bytes();
        CardFacts {
            name: info.name.clone(),
            free_bytes: free / sharing.max(1),
            allocation_bytes_max: info.max_alloc_bytes,
            sub_groups: info.sub_group_sizes.clone(),
            in_host_memory: info.is_cpu,
            memory: None,
            link: None,
            exchange_us: None,
        }
    };
    // Blocks of pinned memory above this size are refused by some drivers.
    let host = HostFacts { free_bytes: host_free, allocation_bytes_max: ARENA_BYTES_MAX };
    Inventory { cards: cards.iter().map(facts).collect(), host }
}

/// Checks that what a plan allocates is free on its cards and the host now.
///
/// # Errors
/// [`EngineError::Admission`] with what is needed and what is free.
pub(super) fn admit(plan: &Plan, cards: &[Card]) -> Result<(), EngineError> {
    let on_card = |index: u32| -> u64 {
        let sharing = cards.iter().zip(&plan.cards).filter(|(card, _)| card.info().index == index);
        sharing.map(|(_, plan)| plan.ledger.total(false)).sum()
    };
    let refuse = |place: String, needed_bytes: u64, free_bytes: u64| match needed_bytes <= free_bytes {
        true => Ok(()),
        false => Err(EngineError::Admission { place, needed_bytes, free_bytes }),
    };
    let mut on_host: u64 = plan.cards.iter().map(|plan| plan.ledger.total(true)).sum();
    let mut seen = Vec::new();
    for (number, card) in cards.iter().enumerate() {
        let info = card.info();
        if seen.contains(&info.index) {
            continue;
        }
        seen.push(info.index);
        if info.is_cpu {
            on_host += on_card(info.index);
        } else {
            refuse(format!("card {number} ({})", info.name), on_card(info.index), card.free_bytes())?;
        }
    }
    refuse("the host".to_owned(), on_host, device::host_free_bytes().unwrap_or(u64::MAX))
}

/// Measures the rates of the cards' memory and links, and what an exchange takes apart from its bytes.
///
/// # Errors
/// When a device fails.
pub fn measured(mut inventory: Inventory, cards: &[Card]) -> Result<Inventory, DeviceError> {
    for (facts, card) in inventory.cards.iter_mut().zip(cards) {
        let queue = Queue::new(card)?;
        let arena = |kind| Ok(Arena::new(card, MEASURED_BYTES, kind)?.whole());
        let (first, second): (Span, Span) = (arena(MemoryKind::Device)?, arena(MemoryKind::Device)?);
        let host: Span = arena(MemoryKind::Host)?;
        for span in [&first, &second, &host] {
            queue.fill(span, 0)?;
        }
        // A copy within the card reads and writes each byte.
        facts.memory = Some(rate(2 * MEASURED_BYTES, fastest_s(&queue, &second, &first)?));
        facts.link = Some(rate(MEASURED_BYTES, fastest_s(&queue, &first, &host)?));
        let (from, to) = (first.span(0, 4)?, host.span(0, 4)?);
        facts.exchange_us = Some(1e6 * (fastest_s(&queue, &to, &from)? + fastest_s(&queue, &from, &to)?));
    }
    Ok(inventory)
}

fn rate(bytes: u64, seconds: f64) -> Rate {
    Rate { bytes_per_s: bytes as f64 / seconds, source: RateSource::Measured }
}

fn fastest_s(queue: &Queue, to: &Span, from: &Span) -> Result<f64, DeviceError> {
    let mut fastest = f64::INFINITY;
    for _ in 0..REPETITIONS {
        queue.wait()?;
        let begin = Instant::now();
        queue.copy(to, from)?;
        queue.wait()?;
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    Ok(fastest.max(1e-9))
}
