//! `residency-sim`: hits and bytes of several choices of resident experts, by replay of a routing trace.

use anyhow::{Result, bail};
use serde_json::json;

use super::Done;
use super::args::ResidencySimArgs;
use super::output::Output;
use crate::residency::{Policy, Profile, Trace, simulate};

pub fn residency_sim(args: &ResidencySimArgs, output: &mut Output) -> Result<Done> {
    let trace = Trace::load(&args.trace)?;
    let (shape, layers) = (trace.shape(), trace.shape().expert_bytes.len());
    if let Some(slots) = args.slots.iter().find(|slots| !(1..=shape.experts).contains(*slots)) {
        bail!("--slots: expected 1 to {}, the experts of a layer, got {slots}", shape.experts);
    }
    let load = |path| Profile::load(path, trace.identity(), layers, shape.experts);
    let profile = args.profile.as_deref().map(load).transpose()?;
    let mut slots = args.slots.clone();
    if slots.is_empty() {
        slots = [(1, 8), (1, 4), (1, 2), (3, 4)].map(|(part, of)| (shape.experts * part / of).max(1)).to_vec();
        slots.dedup();
    }
    let tokens: usize = trace.steps().iter().map(|step| step.tokens()).sum();
    if !args.json {
        output.line(format_args!("model    {}", trace.identity().escape_debug()))?;
        output.line(format_args!(
            "trace    {} steps, {tokens} tokens; {layers} layers of {} experts, of which a token uses {}",
            trace.steps().len(),
            shape.experts,
            shape.used
        ))?;
        output.line(format_args!("budget   {} bytes after a step", args.budget))?;
    }
    let mut runs = Vec::new();
    for slots in slots {
        let outcomes = simulate(&trace, slots, args.budget, profile.as_ref());
        if args.json {
            let policies = outcomes.iter().map(|outcome| {
                let mut policy = json!(outcome.counters);
                policy["policy"] = json!(outcome.policy.name());
                policy["hit_rate"] = json!(outcome.counters.hit_rate());
                policy
            });
            runs.push(json!({ "slots": slots, "policies": policies.collect::<Vec<_>>() }));
            continue;
        }
        output.line(format_args!(
            "{:<30} {:>12} {:>12} {:>8} {:>16} {:>10} {:>16}",
            format!("{slots} slots a layer"),
            "hits",
            "misses",
            "hit rate",
            "miss bytes",
            "swaps",
            "swap bytes"
        ))?;
        for outcome in outcomes {
            let (counters, own) = (outcome.counters, outcome.policy == Policy::Static && profile.is_none());
            output.line(format_args!(
                "  {:<28} {:>12} {:>12} {:>6.2} % {:>16} {:>10} {:>16}",
                format!("{}{}", outcome.policy.name(), if own { " of this trace" } else { "" }),
                counters.hits,
                counters.misses,
                100.0 * counters.hit_rate(),
                counters.miss_bytes,
                counters.swaps,
                counters.swap_bytes
            ))?;
        }
    }
    if args.json {
        output.json(&json!({
            "model": trace.identity(),
            "layers": layers,
            "experts": shape.experts,
            "used": shape.used,
            "steps": trace.steps().len(),
            "tokens": tokens,
            "budget_bytes": args.budget,
            "static_profile": if profile.is_some() { "file" } else { "this trace" },
            "runs": runs,
        }))?;
    }
    Ok(Done::Finished)
}
