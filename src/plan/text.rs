//! A plan as text for a reader.

use std::collections::BTreeSet;
use std::fmt::{self, Formatter, Write};

use super::route::kind_name;
use super::{
    ArenaKind, CardFacts, CardPlan, Estimate, HostFacts, LayerPlan, Misses, Plan, RESERVE_BYTES, Rate, RateSource,
    Split, Step,
};

/// A card, and one of its layers or none.
type CardLayer = (usize, Option<usize>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (spec, options) = (&self.spec, &self.options);
        writeln!(f, "model      {}, {} layers", spec.arch.name(), spec.layers)?;
        let chunk = format!("chunks of at most {}", options.chunk);
        write!(f, "options    context {}, {chunk}, cache {}", options.context, options.kv.name())?;
        for (place, bytes) in [("each card", options.expert_bytes), ("the host", options.host_expert_bytes)] {
            if let Some(bytes) = bytes {
                write!(f, ", at most {} MiB of {place} for experts", mib(bytes))?;
            }
        }
        writeln!(f)?;
        self.inventory(f)?;
        writeln!(f, "split      {}: {}", self.split.name(), self.split_reason)?;
        let misses = match self.misses {
            Misses::None if spec.experts.is_none() => "none: the model has no experts",
            Misses::None => "none: every expert has a slot on its card",
            Misses::Mirror => {
                "experts without a slot are read from pinned host memory, which holds all of their layers"
            }
            Misses::File => {
                "experts without a slot are read from the file into pinned host memory before their layer runs"
            }
        };
        writeln!(f, "misses     {misses}")?;
        let estimate = Estimate::of(self, 0);
        if estimate.exchanges > 0 {
            let (count, bytes) = (estimate.exchanges, estimate.exchange_bytes);
            writeln!(f, "exchanges  {count} a token, in which {bytes} bytes leave or reach a card")?;
        }
        writeln!(f)?;
        self.memory(f)?;
        writeln!(f)?;
        self.operations(f)?;
        writeln!(f)?;
        self.estimate(f)
    }
}

impl Plan {
    fn inventory(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cards = &self.inventory.cards;
        for (numbers, facts) in runs_of_equal(cards.iter().collect()) {
            writeln!(f, "{:<11}{}", named("card", &numbers), card_facts(facts))?;
        }
        writeln!(f, "host       {}", host_facts(&self.inventory.host))
    }

    fn memory(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "memory, in MiB: arenas of at most 4 GB, live from loading to closing; every layer writes the buffers anew"
        )?;
        let blocks = (0..self.cards.len()).map(|card| self.card(card)).collect::<Result<Vec<_>, _>>()?;
        for (numbers, block) in runs_of_equal(blocks) {
            write!(f, "{}: {block}", named("card", &numbers))?;
        }
        let pinned: u64 = self.cards.iter().map(|card| card.ledger.total(true)).sum();
        writeln!(f, "host: {} pinned, {} free before", mib(pinned), limit(self.inventory.host.free_bytes))
    }

    /// A card's part, without its number.
    fn card(&self, number: usize) -> Result<String, fmt::Error> {
        let (card, facts) = (&self.cards[number], &self.inventory.cards[number]);
        let mut text = format!("{} of {}", named("layer", &card.range.clone().collect()), self.spec.layers);
        if card.buffers.embedded.is_some() {
            text += ", the input";
        }
        if !card.logit_range.is_empty() {
            write!(text, ", {} of {} logits", card.logit_range.len(), self.spec.vocab)?;
        }
        writeln!(text, "\n  {:<14} {:>10} {:>7} {:>10}", "", "MiB", "arenas", "largest")?;
        for kind in ArenaKind::ALL.into_iter().filter(|kind| !kind.on_host()) {
            arena_row(&mut text, card, kind)?;
        }
        writeln!(text, "  {:<14} {:>10}", "reserve", mib(RESERVE_BYTES))?;
        let left = facts.free_bytes.saturating_sub(card.ledger.total(false).saturating_add(RESERVE_BYTES));
        let unlimited = facts.free_bytes == u64::MAX;
        for (name, bytes) in [("free", facts.free_bytes), ("left", left)] {
            let bytes = if unlimited { "no limit".to_owned() } else { mib(bytes) };
            writeln!(text, "  {name:<14} {bytes:>10}")?;
        }
        for kind in ArenaKind::ALL.into_iter().filter(|kind| kind.on_host()) {
            arena_row(&mut text, card, kind)?;
        }
        let how = match (self.recorded(), self.split) {
            (true, _) => "recorded as a graph and replayed",
            (false, Split::Tensor) => "launched one by one around the exchanges",
            (false, Split::Layer) => "launched one by one around the reads of experts",
        };
        writeln!(text, "  a step of one token: {} kernels, {how}", card.launches())?;
        Ok(text)
    }

    fn operations(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "operations: bytes of weights, of experts those of one; kernel module and kernels. r1 is `matmul_r1`, for one row \
             of activations; r8 is `matmul_r8`, for eight at a time"
        )?;
        for (places, text) in self.entries()? {
            let layers: BTreeSet<usize> = places.iter().filter_map(|(_, layer)| *layer).collect();
            let cards: BTreeSet<usize> = places.iter().map(|(card, _)| *card).collect();
            let layers = if layers.is_empty() { String::new() } else { named("layer", &layers) + " " };
            write!(f, "{layers}on {}: {text}", named("card", &cards))?;
        }
        Ok(())
    }

    /// Listings of start, layers and head, each once with all cards and layers that have it.
    fn entries(&self) -> Result<Vec<(Vec<CardLayer>, String)>, fmt::Error> {
        let mut entries: Vec<(Vec<CardLayer>, String)> = Vec::new();
        let mut add = |place, text: String| match entries.iter_mut().find(|(_, known)| *known == text) {
            Some((places, _)) => places.push(place),
            None => entries.push((vec![place], text)),
        };
        for (number, card) in self.cards.iter().enumerate() {
            if !card.start.is_empty() {
                add((number, None), format!("start\n{}", self.steps(card, &card.start)?));
            }
            for layer in &card.layers {
                let text = format!("{}\n{}", self.layer(card, layer), self.steps(card, &layer.steps)?);
                add((number, Some(layer.index)), text);
            }
        }
        for (number, card) in self.cards.iter().enumerate().filter(|(_, card)| !card.head.is_empty()) {
            add((number, None), format!("head\n{}", self.steps(card, &card.head)?));
        }
        Ok(entries)
    }

    fn layer(&self, card: &CardPlan, layer: &LayerPlan) -> String {
        let kind = kind_name(layer.kind);
        let Some((experts, slots)) =
            self.spec.experts.as_ref().zip(card.experts.iter().find(|experts| experts.layer == layer.index))
        else {
            return kind.to_owned();
        };
        let (count, all, bytes) = (slots.slots.count, experts.count, slots.slots.slot_bytes);
        format!("{kind}; {count} of {all} experts resident, in slots of {bytes} bytes")
    }

    fn steps(&self, card: &CardPlan, steps: &[Step]) -> Result<String, fmt::Error> {
        let mut text = String::new();
        for Step { name, op } in steps {
            let one = card.kernels(op, &self.options, 1);
            let mut route = String::new();
            let mut last = "";
            for (module, kernel) in &one {
                let kernel = if *kernel == "matmul_r1" { "r1|r8" } else { kernel };
                match module == last {
                    true => write!(route, ", {kernel}")?,
                    false => write!(route, "{}{module} {kernel}", if route.is_empty() { "" } else { "; " })?,
                }
                last = module;
            }
            let reason = card.reason(op, &self.spec);
            let gap = if route.is_empty() || reason.is_empty() { "" } else { ": " };
            let bytes = match card.weight_bytes(op) {
                0 => "-".to_owned(),
                bytes => bytes.to_string(),
            };
            writeln!(text, "  {name:<18} {bytes:>10}  {route}{gap}{reason}")?;
        }
        Ok(text)
    }

    fn estimate(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let first = Estimate::of(self, 0);
        let missing = first.missing(self);
        if !missing.is_empty() {
            return writeln!(f, "no estimate of a step's time, for which the inventory lacks {}", missing.join(", "));
        }
        writeln!(
            f,
            "estimate of the least time of a step of one token, from bytes and the rates above: NOT A MEASUREMENT\n\
             assumed: every expert is chosen equally often; launches, arithmetic and the host's own work take no time"
        )?;
        for estimate in [first, Estimate::of(self, self.options.context - 1)] {
            let Some(step_us) = estimate.step_us else { continue };
            let at = estimate.position;
            let most = 1e6 / step_us;
            writeln!(
                f,
                "at position {at}: at least {} ms a step, at most {most:.1} tok/s by this estimate",
                ms(step_us)
            )?;
            for (numbers, card) in runs_of_equal(estimate.cards.iter().collect()) {
                let (bytes, host_bytes) = (card.bytes, card.host_bytes);
                write!(
                    f,
                    "  {:<13}{} ms: {bytes} bytes of its memory",
                    named("card", &numbers),
                    ms(card.us.unwrap_or(0.0))
                )?;
                match host_bytes {
                    0 => writeln!(f)?,
                    bytes => writeln!(f, ", {bytes} of the host's")?,
                }
            }
            if estimate.exchanges > 0 {
                writeln!(f, "  {:<13}{} ms", "exchanges", ms(estimate.exchange_us.unwrap_or(0.0)))?;
            }
        }
        Ok(())
    }
}

fn arena_row(text: &mut String, card: &CardPlan, kind: ArenaKind) -> fmt::Result {
    let arenas: Vec<u64> = card.ledger.arenas.iter().filter(|(k, _)| *k == kind).map(|(_, bytes)| *bytes).collect();
    let Some(largest) = arenas.iter().max() else { return Ok(()) };
    let (sum, count) = (card.ledger.bytes(kind), arenas.len());
    write!(text, "  {:<14} {:>10} {count:>7} {:>10}", kind.name(), mib(sum), mib(*largest))?;
    match (kind, &card.host_slots) {
        (ArenaKind::Experts, _) => write!(text, "  slots for {}", slots_text(card))?,
        (ArenaKind::HostExperts, Some(slots)) => write!(text, "  {} slots for experts that are read", slots.count)?,
        (ArenaKind::HostExperts, None) => {
            let mirrors = card.experts.iter().filter(|layer| layer.mirror.is_some()).count();
            write!(text, "  all experts of {mirrors} layers")?;
        }
        _ => {}
    }
    if kind.on_host() {
        write!(text, "  (pinned host memory)")?;
    }
    writeln!(text)
}

/// Slots of the card's layers, as `40 experts in 12 layers, 39 experts in 36 layers`.
fn slots_text(card: &CardPlan) -> String {
    let counts: BTreeSet<usize> = card.experts.iter().map(|layer| layer.slots.count).collect();
    let layers = |count: usize| card.experts.iter().filter(|layer| layer.slots.count == count).count();
    let each =
        counts.iter().rev().map(|count| format!("{} in {}", many(*count, "expert"), many(layers(*count), "layer")));
    each.collect::<Vec<_>>().join(", ")
}

fn card_facts(facts: &CardFacts) -> String {
    let lanes = facts.sub_groups.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let rate = |rate: Option<Rate>| rate.map_or("not known".to_owned(), |rate| rate.to_string());
    // All figures of an inventory come from the same place.
    let source = facts.memory.or(facts.link).map_or(RateSource::Stated, |rate| rate.source);
    let exchange = facts.exchange_us.map_or("not known".to_owned(), |us| format!("{us:.1} us ({})", source.name()));
    let place = if facts.in_host_memory { " of the host's memory" } else { "" };
    format!(
        "{}: {} MiB{place} free, {} MiB at once, sub-groups of {lanes} lanes; memory {}, link {}, exchange {exchange}",
        facts.name,
        limit(facts.free_bytes),
        limit(facts.allocation_bytes_max),
        rate(facts.memory),
        rate(facts.link)
    )
}

fn host_facts(host: &HostFacts) -> String {
    format!("{} MiB free, {} MiB at once", limit(host.free_bytes), limit(host.allocation_bytes_max))
}

fn limit(bytes: u64) -> String {
    if bytes == u64::MAX { "unlimited".to_owned() } else { mib(bytes) }
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

fn ms(us: f64) -> String {
    format!("{:.3}", us / 1e3)
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `layer 3`, `layers 0-2, 4`.
fn named(what: &str, numbers: &BTreeSet<usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let run = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let list = runs.iter().map(run).collect::<Vec<_>>().join(", ");
    format!("{what}{} {list}", if numbers.len() == 1 { "" } else { "s" })
}

/// Items that follow each other and are equal, with their numbers.
fn runs_of_equal<T: PartialEq>(items: Vec<T>) -> Vec<(BTreeSet<usize>, T)> {
    let mut runs: Vec<(BTreeSet<usize>, T)> = Vec::new();
    for (number, item) in items.into_iter().enumerate() {
        match runs.last_mut() {
            Some((numbers, same)) if *same == item => {
                numbers.insert(number);
            }
            _ => runs.push((BTreeSet::from([number]), item)),
        }
    }
    runs
}
