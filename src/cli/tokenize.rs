//! `tokenize`: the ids of a text.

use anyhow::Result;
use serde_json::json;

use super::Done;
use super::args::TokenizeArgs;
use super::engine::open_model;
use super::output::Output;
use super::run::read_prompt;

pub fn tokenize(args: &TokenizeArgs, output: &mut Output) -> Result<Done> {
    let model = open_model(&args.model)?;
    let tokenizer = model.tokenizer();
    let ids = tokenizer.encode(&read_prompt(&args.prompt)?, !args.no_special)?;
    if args.json {
        output.json(&json!({ "ids": ids }))?;
        return Ok(Done::Finished);
    }
    for id in &ids {
        let bytes = tokenizer.token_bytes(*id).unwrap_or_default();
        output.line(format_args!("{id:>7}  \"{}\"", String::from_utf8_lossy(bytes).escape_debug()))?;
    }
    Ok(Done::Finished)
}
