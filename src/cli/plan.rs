//! `plan`: how a model would be laid out on cards and computed, without loading it.

use anyhow::{Result, anyhow};

use super::Done;
use super::args::PlanArgs;
use super::cards::choose_cards;
use super::engine::{CONTEXT, options};
use super::output::Output;
use crate::exec;
use crate::gguf::GgufFile;
use crate::model::Bound;
use crate::plan::{Inventory, Plan};

pub fn plan(args: &PlanArgs, output: &mut Output) -> Result<Done> {
    let inventory = match &args.cards {
        Some(file) => Inventory::read(file)?,
        None => {
            let cards = choose_cards(args.device.as_deref())?;
            exec::measured(exec::inventory(&cards), &cards)?
        }
    };
    let file = GgufFile::open(&args.model)?;
    // As a run has it, which keeps matrices as BF16 where that changes nothing.
    let bound = Bound::narrowed(&file).map_err(|error| anyhow!("{}: {error}", args.model.display()))?;
    for warning in &bound.warnings {
        eprintln!("warning: {}: {warning}", args.model.display());
    }
    let context = args.ctx.unwrap_or(bound.spec.context_length.min(CONTEXT));
    let plan = Plan::fit(&bound, options(&args.options, context), &inventory)?;
    if args.json {
        output.json(&plan.to_json())?;
    } else {
        output.text(&plan.to_string())?;
    }
    Ok(Done::Finished)
}
