//! `run`: continue a prompt.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::args::{PromptArgs, RunArgs};
use super::engine::{Opened, open_engine, open_model};
use super::generate::{Answer, Finish, generate};
use super::output::Output;
use super::session::{Beginning, Kept, describe_saved};
use super::{Done, interrupt};
use crate::exec::{Breakdown, Engine, OpTime};
use crate::load::Model;
use crate::text::{Message, RenderOptions};

/// The text that the arguments name.
pub fn read_prompt(args: &PromptArgs) -> Result<String> {
    given_prompt(args.prompt.as_deref(), args.prompt_file.as_deref())?.context("expected --prompt or --prompt-file")
}

/// A prompt that may be missing.
fn given_prompt(text: Option<&str>, file: Option<&Path>) -> Result<Option<String>> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text.to_owned())),
        (None, file) => file.map(read_text).transpose(),
    }
}

/// A file's text, or standard input's for `-`.
pub fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    String::from_utf8(bytes).with_context(|| format!("{}: expected UTF-8 text", path.display()))
}

/// The prompt in the model's own chat form.
pub fn chat_prompt(model: &Model, system: Option<&str>, user: &str, thinking: Option<bool>) -> Result<String> {
    let Some(template) = model.chat_template()? else {
        bail!(
            "{}: expected a key `tokenizer.chat_template`, found none; run without --chat",
            model.file().path().display()
        );
    };
    let message = |role: &str, content: &str| Message { role: role.to_owned(), content: content.to_owned() };
    let mut messages: Vec<Message> = system.map(|text| message("system", text)).into_iter().collect();
    messages.push(message("user", user));
    Ok(template.render(&messages, RenderOptions { add_generation_prompt: true, enable_thinking: thinking })?)
}

/// Token ids of a prompt, with the beginning-of-sequence token where the model asks for one.
pub fn prompt_ids(model: &Model, text: &str) -> Result<Vec<u32>> {
    let ids = model.tokenizer().encode_prompt(text)?;
    if ids.is_empty() {
        bail!("the prompt is empty: expected at least one token");
    }
    Ok(ids)
}

pub fn run(args: &RunArgs, output: &mut Output) -> Result<Done> {
    let model = open_model(&args.model)?;
    let beginning = Beginning::of(args.session.session_dir.as_deref(), args.session.restore.as_deref())?;
    let known = beginning.as_ref().map_or(0, |beginning| beginning.tokens);
    let text = given_prompt(args.prompt.as_deref(), args.prompt_file.as_deref())?;
    let prompt = match text {
        Some(text) if args.chat => prompt_ids(&model, &chat_prompt(&model, args.system.as_deref(), &text, None)?)?,
        Some(text) if beginning.is_some() => model.tokenizer().encode(&text, true)?,
        Some(text) => prompt_ids(&model, &text)?,
        None => Vec::new(),
    };
    let limit = model.bound().spec.context_length;
    let context = args.ctx.unwrap_or_else(|| known.saturating_add(prompt.len()).saturating_add(args.n).min(limit));
    check_length(known, prompt.len(), context.min(limit))?;
    let Opened { mut engine, load, records } = open_engine(model, &args.engine, context)?;
    let kept = Kept::begin(&mut engine, &args.session, beginning)?;
    // From here on; while loading, Ctrl-C ends the program at once.
    interrupt::listen();
    let mut ids = engine.ids().to_vec();
    ids.extend(&prompt);
    if prompt.is_empty() && engine.logits().is_none() {
        bail!("the session was saved without the logits after its last token: expected a prompt that continues it");
    }
    let answer = generate(&mut engine, &ids, args.n, |id, piece| match (args.json, args.ids) {
        (true, _) => Ok(()),
        (false, true) => output.text(&format!("{id} ")),
        (false, false) => output.text(piece),
    })?;
    // Of the answer alone.
    let (ngram_rows, experts) = (engine.ngram_counters(), engine.expert_counters());
    let snapshots = engine.bank_counters();
    if !args.json {
        output.line("")?;
        eprintln!("{}", summary(&answer));
        if let Some(counters) = ngram_rows {
            eprintln!("n-gram rows: {counters}");
        }
        if let Some(counters) = experts {
            eprintln!("experts: {counters}");
        }
        if let Some(counters) = snapshots {
            eprintln!("snapshots: {counters}");
        }
    }
    let saved = kept.as_ref().map(|kept| kept.save(&mut engine, &answer)).transpose()?.flatten();
    let mut done = if answer.finish == Finish::Interrupted { Done::Interrupted } else { Done::Finished };
    let mut parts = Vec::new();
    if args.breakdown && done == Done::Finished {
        match measure(&mut engine, &prompt, &answer)? {
            Some(measured) => parts = measured,
            None => done = Done::Interrupted,
        }
    }
    if args.json {
        let mut object = json!({
            "restored_tokens": known,
            "prompt_ids": prompt,
            "ids": answer.ids,
            "text": answer.text,
            "finish_reason": answer.finish.name(),
            "timings": answer.timings(load),
            "ngram_rows": ngram_rows,
            "experts": experts,
            "snapshots": snapshots,
            "saved": args.session.save.as_ref().zip(saved).map(|(name, saved)| describe_saved(name, &engine, &saved)),
        });
        if !parts.is_empty() {
            object["breakdown"] = parts
                .iter()
                .map(|(name, _, part)| ((*name).to_owned(), operations(part)))
                .collect::<Map<_, _>>()
                .into();
        }
        output.json(&object)?;
    } else {
        for (name, usual, part) in parts {
            eprintln!("\n{name}: {:.1} ms, with a wait after every operation:", usual.as_secs_f64() * 1e3);
            eprint!("{part}");
        }
    }
    records.finish(engine)?;
    Ok(done)
}

/// Whether a prompt after `known` tokens has room.
pub fn check_length(known: usize, prompt: usize, context: usize) -> Result<()> {
    match known {
        _ if known.saturating_add(prompt) <= context => Ok(()),
        0 => bail!("the prompt has {prompt} tokens: expected at most {context}, the context's length"),
        _ => bail!(
            "the session has {known} tokens and the prompt {prompt}: expected at most {context} together, the context's length"
        ),
    }
}

/// A part's name, what it took, and its operations.
type Part = (&'static str, Duration, Breakdown);

/// Times of the prompt and of the answer's steps: what they took together, and operation by operation in a repetition.
/// `None` after Ctrl-C.
fn measure(engine: &mut Engine, prompt: &[u32], answer: &Answer) -> Result<Option<Vec<Part>>> {
    engine.reset()?;
    let (mut first, mut steps) = (Breakdown::default(), Breakdown::default());
    engine.feed_measured(prompt, &mut first)?;
    for id in &answer.ids[..answer.decode_steps()] {
        if interrupt::asked() {
            return Ok(None);
        }
        engine.feed_measured(&[*id], &mut steps)?;
    }
    Ok(Some(vec![("prompt", answer.prompt_time, first), ("answer", answer.decode_time, steps)]))
}

/// A breakdown's rows for programs.
fn operations(breakdown: &Breakdown) -> Value {
    let row = |op: &OpTime| {
        json!({
            "name": op.name,
            "format": op.matrix.map(|(format, _, _)| format.name()),
            "shape": op.matrix.map(|(_, rows, columns)| [rows, columns]),
            "calls": op.calls(),
            "weight_bytes": op.weight_bytes,
            "bytes": op.bytes,
            "products": op.products,
            "us": op.time().as_micros() as u64,
        })
    };
    breakdown.ops().iter().map(row).collect()
}

/// Speeds of an answer in words.
pub fn summary(answer: &Answer) -> String {
    let mut text = match answer.prompt_tokens {
        0 => "no prompt to compute".to_owned(),
        tokens => format!("prompt {tokens} tokens, {:.1} tok/s", answer.prompt_per_second()),
    };
    if answer.decode_steps() > 0 {
        text += &format!("; answer {} tokens, {:.1} tok/s", answer.ids.len(), answer.decode_per_second());
    }
    text + &format!("; ended by {}", answer.finish.name())
}
