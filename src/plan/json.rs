//! A plan as JSON, for programs.

use serde_json::{Value, json};

use super::{
    ArenaKind, CardPlan, Estimate, Inventory, LayerPlan, Place, Plan, RESERVE_BYTES, Rate, Region, Slab, Step,
    kind_name,
};

impl Plan {
    /// All of a plan as JSON, as the command `plan` prints it.
    pub fn to_json(&self) -> Value {
        describe(self)
    }
}

fn describe(plan: &Plan) -> Value {
    let (spec, options) = (&plan.spec, &plan.options);
    let estimates = [0, options.context - 1].map(|position| Estimate::of(plan, position));
    json!({
        "model": {
            "architecture": spec.arch.name(),
            "layers": spec.layers,
            "experts": spec.experts.as_ref().map(|experts| experts.count),
            "experts_used": spec.experts.as_ref().map(|experts| experts.used),
        },
        "options": {
            "context": options.context,
            "chunk": options.chunk,
            "kv": options.kv.name(),
            "split": options.split.map(|split| split.name()),
            "expert_budget_bytes": options.expert_bytes,
            "host_expert_budget_bytes": options.host_expert_bytes,
            "bank_budget_bytes": options.bank_bytes,
            "host_bank_budget_bytes": options.host_bank_bytes,
        },
        "inventory": describe_inventory(&plan.inventory),
        "split": plan.split.name(),
        "split_reason": plan.split_reason,
        "misses": plan.misses.name(),
        "step_is_recorded": plan.recorded(),
        "cards": (0..plan.cards.len()).map(|card| describe_card(plan, card)).collect::<Value>(),
        "estimates": estimates.iter().map(|estimate| describe_estimate(plan, estimate)).collect::<Value>(),
    })
}

fn describe_inventory(inventory: &Inventory) -> Value {
    let rate =
        |rate: Option<Rate>| rate.map(|rate| json!({ "bytes_per_s": rate.bytes_per_s, "source": rate.source.name() }));
    let cards: Value = inventory
        .cards
        .iter()
        .map(|card| {
            json!({
                "name": card.name,
                "free_bytes": card.free_bytes,
                "allocation_bytes_max": card.allocation_bytes_max,
                "sub_group_sizes": card.sub_groups,
                "in_host_memory": card.in_host_memory,
                "memory": rate(card.memory),
                "link": rate(card.link),
                "exchange_us": card.exchange_us,
            })
        })
        .collect();
    let host = &inventory.host;
    json!({
        "cards": cards,
        "host": {
            "free_bytes": host.free_bytes,
            "allocation_bytes_max": host.allocation_bytes_max,
        },
    })
}

fn describe_card(plan: &Plan, number: usize) -> Value {
    let (card, facts) = (&plan.cards[number], &plan.inventory.cards[number]);
    let bytes: serde_json::Map<String, Value> = ArenaKind::ALL
        .into_iter()
        .map(|kind| (kind.name().replace(' ', "_"), json!(card.ledger.bytes(kind))))
        .collect();
    let arenas: Value = card
        .ledger
        .arenas
        .iter()
        .map(|(kind, bytes)| json!({ "kind": kind.name(), "bytes": bytes, "on_host": kind.on_host() }))
        .collect();
    let experts: Value = card
        .experts
        .iter()
        .map(|layer| {
            json!({
                "layer": layer.layer,
                "matrix_offsets": layer.offsets,
                "slots": slab(&layer.slots),
                "mirror": layer.mirror.as_ref().map(slab),
                "table": region(layer.table),
            })
        })
        .collect();
    let state: Value = card
        .state
        .iter()
        .map(|item| json!({ "layer": item.layer, "kind": item.kind.name(), "region": region(item.region) }))
        .collect();
    let steps = |steps: &[Step]| steps.iter().map(|step| describe_step(plan, card, step)).collect::<Value>();
    let layer = |layer: &LayerPlan| json!({ "layer": layer.index, "kind": kind_name(layer.kind), "steps": steps(&layer.steps) });
    json!({
        "first_layer": card.range.start,
        "layers_end": card.range.end,
        "first_logit": card.logit_range.start,
        "logits_end": card.logit_range.end,
        "bytes": bytes,
        "reserve_bytes": RESERVE_BYTES,
        "left_bytes": facts.free_bytes.saturating_sub(card.ledger.total(false).saturating_add(RESERVE_BYTES)),
        "arenas": arenas,
        "experts": experts,
        "host_slots": card.host_slots.as_ref().map(slab),
        "state": state,
        "modules": card.modules,
        "launches": card.launches(),
        "start": steps(&card.start),
        "layers": card.layers.iter().map(layer).collect::<Value>(),
        "head": steps(&card.head),
    })
}

fn describe_step(plan: &Plan, card: &CardPlan, step: &Step) -> Value {
    let kernels = |rows| -> Value {
        let launches = card.kernels(&step.op, &plan.options, rows);
        launches.into_iter().map(|(module, kernel)| json!({ "module": module, "kernel": kernel })).collect()
    };
    let vectors: Value = card
        .vectors_of(&step.op)
        .into_iter()
        .map(|vector| &card.vectors[vector])
        .map(|vector| json!({ "tensor": vector.values.name(), "region": region(vector.region) }))
        .collect();
    let matrix = card.matrix(&step.op).map(|weight| {
        json!({
            "tensor": weight.tensor.name(),
            "format": weight.tensor.format.name(),
            "stored_format": weight.tensor.stored_format().name(),
            "rows": weight.tensor.rows,
            "columns": weight.tensor.cols,
            "experts": weight.tensor.experts,
            "matrix_bytes": weight.matrix_bytes,
            "region": match weight.place {
                Place::Region(place) => region(place),
                Place::Experts { .. } => Value::Null,
            },
        })
    });
    json!({
        "name": step.name,
        "kernels_one_row": kernels(1),
        "kernels_more_rows": kernels(2),
        "reason": card.reason(&step.op, &plan.spec),
        "matrix": matrix,
        "vectors": vectors,
    })
}

fn region(region: Region) -> Value {
    json!({ "arena": region.arena, "offset": region.offset, "bytes": region.bytes })
}

fn slab(slab: &Slab) -> Value {
    json!({ "count": slab.count, "slot_bytes": slab.slot_bytes, "bytes": slab.bytes() })
}

fn describe_estimate(plan: &Plan, estimate: &Estimate) -> Value {
    let cards: Value = estimate
        .cards
        .iter()
        .map(|card| json!({ "bytes": card.bytes, "host_bytes": card.host_bytes, "us": card.us }))
        .collect();
    json!({
        "is_measured": false,
        "position": estimate.position,
        "cards": cards,
        "exchanges": estimate.exchanges,
        "exchange_bytes": estimate.exchange_bytes,
        "exchange_us": estimate.exchange_us,
        "step_us": estimate.step_us,
        "missing": estimate.missing(plan),
    })
}
