//! `session`: saved sessions as files, and what other commands need of them.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};

use super::Done;
use super::args::{
    SessionArgs, SessionCommand, SessionDeleteArgs, SessionInspectArgs, SessionListArgs, SessionPruneArgs,
    SessionRestoreArgs, SessionSaveArgs,
};
use super::engine::{Opened, open_engine, open_model};
use super::generate::Answer;
use super::output::Output;
use super::run::{check_length, prompt_ids, read_prompt};
use crate::exec::{Engine, argmax};
use crate::load::Model;
use crate::model::KvType;
use crate::plan::{Options, Plan};
use crate::session::{Base, Keeper};
use crate::state::{Identity, Info, Saved, SessionError, Store, would_take};

pub fn session(command: &SessionCommand, output: &mut Output) -> Result<Done> {
    match command {
        SessionCommand::Save(args) => save(args, output)?,
        SessionCommand::Inspect(args) => inspect(args, output)?,
        SessionCommand::Restore(args) => restore(args, output)?,
        SessionCommand::Delete(args) => delete(args)?,
        SessionCommand::List(args) => list(args, output)?,
        SessionCommand::Prune(args) => prune(args, output)?,
    }
    Ok(Done::Finished)
}

/// A session that a command begins with, before there is an engine.
pub struct Beginning<'a> {
    pub store: Store,
    pub name: &'a str,
    /// Tokens that it has.
    pub tokens: usize,
}

impl<'a> Beginning<'a> {
    /// What the arguments name, if they name one. Its file's header is read.
    pub fn of(dir: Option<&Path>, name: Option<&'a str>) -> Result<Option<Beginning<'a>>> {
        let (Some(dir), Some(name)) = (dir, name) else { return Ok(None) };
        let store = existing(dir)?;
        // No context is longer, so that a larger number is refused when there is an engine.
        let tokens = usize::try_from(store.inspect(name, false)?.position).unwrap_or(usize::MAX);
        Ok(Some(Beginning { store, name, tokens }))
    }
}

/// What a command keeps of its engine's sequence.
pub struct Kept {
    keeper: Keeper,
    base: Option<Base>,
    name: Option<String>,
    compress: bool,
}

impl Kept {
    /// Restores what the arguments name, and is ready to save.
    pub fn begin(engine: &mut Engine, args: &SessionArgs, beginning: Option<Beginning<'_>>) -> Result<Option<Kept>> {
        let Some(dir) = &args.session_dir else { return Ok(None) };
        let (store, restored) = match beginning {
            Some(beginning) => (beginning.store, Some(beginning.name)),
            None => (Store::open(dir)?, None),
        };
        let keeper = Keeper::new(store, engine)?;
        check_save(&keeper, args)?;
        let base = restored.map(|name| keeper.restore(engine, name)).transpose()?.map(|restored| restored.base);
        Ok(Some(Kept { keeper, base, name: args.save.clone(), compress: args.compress }))
    }

    /// Saves the sequence with all of an answer, if that was asked for.
    pub fn save(&self, engine: &mut Engine, answer: &Answer) -> Result<Option<Saved>> {
        let Some(name) = &self.name else { return Ok(None) };
        if !take_in(engine, answer)? {
            eprintln!("warning: the context is full: the answer's last token is not part of the saved session");
        }
        let saved = save_as(&self.keeper, engine, name, self.compress, self.base.as_ref())?;
        Ok(Some(saved))
    }
}

/// Whether what will be computed can be saved under its name.
pub fn check_save(keeper: &Keeper, args: &SessionArgs) -> Result<()> {
    let Some(name) = &args.save else { return Ok(()) };
    keeper.check_name(name)?;
    let is_there = !matches!(keeper.store().inspect(name, false), Err(SessionError::NotFound { .. }));
    if is_there && !args.replace && args.restore.as_ref() != Some(name) {
        bail!(
            "session '{name}': expected a new name, found one that is there: --restore goes on with it, --replace replaces it"
        );
    }
    Ok(())
}

/// Computes the answer's last token, which was chosen and nothing more, so that a saved sequence continues behind it. False if the context is full.
pub fn take_in(engine: &mut Engine, answer: &Answer) -> Result<bool> {
    let Some(last) = answer.ids.last().filter(|_| answer.last_is_open) else { return Ok(true) };
    let has_room = engine.position() < engine.plan().options.context;
    if has_room {
        engine.feed(&[*last])?;
    }
    Ok(has_room)
}

/// Saves under a name; what other sessions need under this name stays, and is an error.
fn save_as(keeper: &Keeper, engine: &mut Engine, name: &str, compress: bool, base: Option<&Base>) -> Result<Saved> {
    // A session cannot be a delta of what it replaces, or of what needs that.
    let base = base.filter(|_| keeper.store().inspect(name, false).is_err());
    Ok(keeper.save(engine, name, None, compress, base)?)
}

/// Opens a folder that has to be there.
fn existing(dir: &Path) -> Result<Store> {
    if !dir.is_dir() {
        bail!("--session-dir: expected a folder, found none at {}", dir.display());
    }
    Ok(Store::open(dir)?)
}

fn save(args: &SessionSaveArgs, output: &mut Output) -> Result<()> {
    let model = open_model(&args.model)?;
    let beginning = Beginning::of(Some(&args.dir.session_dir), args.restore.as_deref())?;
    let known = beginning.as_ref().map_or(0, |beginning| beginning.tokens);
    let text = read_prompt(&args.prompt)?;
    let prompt = if known > 0 { model.tokenizer().encode(&text, true)? } else { prompt_ids(&model, &text)? };
    let limit = model.bound().spec.context_length;
    let context = args.ctx.unwrap_or(known.saturating_add(prompt.len())).min(limit);
    check_length(known, prompt.len(), context)?;
    let Opened { mut engine, records, .. } = open_engine(model, &args.engine, context)?;
    let session = SessionArgs {
        session_dir: Some(args.dir.session_dir.clone()),
        save: Some(args.name.clone()),
        restore: args.restore.clone(),
        replace: args.replace,
        compress: args.compress,
    };
    if let Some(kept) = Kept::begin(&mut engine, &session, beginning)? {
        let mut ids = engine.ids().to_vec();
        ids.extend(prompt);
        engine.prompt(&ids)?;
        let saved = save_as(&kept.keeper, &mut engine, &args.name, args.compress, kept.base.as_ref())?;
        match args.json {
            true => output.json(&describe_saved(&args.name, &engine, &saved))?,
            false => output.line(format_args!(
                "saved '{}': {} tokens, {} bytes, snapshot {}",
                args.name,
                engine.position(),
                saved.bytes,
                saved.id
            ))?,
        }
    }
    records.finish(engine)
}

pub fn describe_saved(name: &str, engine: &Engine, saved: &Saved) -> Value {
    json!({ "name": name, "tokens": engine.position(), "bytes": saved.bytes, "snapshot": saved.id.to_string() })
}

fn inspect(args: &SessionInspectArgs, output: &mut Output) -> Result<()> {
    let info = existing(&args.dir.session_dir)?.inspect(&args.name, args.verify)?;
    let verdict = match &args.model {
        None => None,
        Some(path) => Some(verdict(&info, &open_model(path)?, args.kv.into())?),
    };
    if args.json {
        let mut object = info.to_json();
        object["verified"] = args.verify.into();
        if let Some(verdict) = &verdict {
            object["taken"] = verdict.is_none().into();
            object["refused_for"] = verdict.clone().into();
        }
        output.json(&object)?;
    } else {
        print(&info, args.verify, output)?;
        match verdict {
            None => {}
            Some(None) => output.line("model     takes it")?,
            Some(Some(reason)) => output.line(format_args!("model     does not take it: {reason}"))?,
        }
    }
    Ok(())
}

/// Why a model does not take a session; `None` if it does.
fn verdict(info: &Info, model: &Model, kv: KvType) -> Result<Option<String>> {
    let limit = model.bound().spec.context_length;
    // Neither context nor chunk are part of what a session depends on.
    let plan = Plan::new(model.bound(), Options::new(limit.min(super::engine::CONTEXT), 1, kv))?;
    if let Err(mismatch) = would_take(info, &Identity::of(model, &plan)?) {
        return Ok(Some(mismatch.to_string()));
    }
    if info.position > limit as u64 {
        return Ok(Some(format!("position: expected at most {limit} tokens of context, found {}", info.position)));
    }
    Ok(info.broken.clone())
}

fn print(info: &Info, verified: bool, output: &mut Output) -> Result<()> {
    output.line(format_args!("name      {}", info.name))?;
    output.line(format_args!("snapshot  {}", info.id))?;
    output.line(format_args!("tokens    {}, of which rows from {} on are in this file", info.position, info.from))?;
    let logits = if info.has_logits { "with" } else { "without" };
    output.line(format_args!("bytes     {}, {logits} logits, format {}", info.bytes, info.version))?;
    for link in &info.chain {
        let name = link.name.as_deref().unwrap_or("(not in this folder)");
        output.line(format_args!("parent    {name}, snapshot {}", link.id))?;
    }
    if let Some(broken) = &info.broken {
        output.line(format_args!("broken    {broken}"))?;
    }
    output.line(format_args!(
        "age       {} since it was saved, {} since its last use",
        age(info.created),
        age(info.last_used)
    ))?;
    for (field, value) in info.identity.fields() {
        output.line(format_args!("identity  {field} {value}"))?;
    }
    if let Some(bytes) = info.notes_bytes {
        output.line(format_args!("notes     {bytes} bytes"))?;
    }
    output.line(format_args!("text      {:?}, {} bytes in all", info.text_start, info.text_bytes))?;
    if verified {
        output.line("sums      all as they were written")?;
    }
    Ok(())
}

fn restore(args: &SessionRestoreArgs, output: &mut Output) -> Result<()> {
    let model = open_model(&args.model)?;
    let Some(beginning) = Beginning::of(Some(&args.dir.session_dir), Some(&args.name))? else { return Ok(()) };
    let limit = model.bound().spec.context_length;
    let context = args.ctx.unwrap_or(beginning.tokens.max(1)).min(limit);
    check_length(beginning.tokens, 0, context)?;
    let Opened { mut engine, records, .. } = open_engine(model, &args.engine, context)?;
    let keeper = Keeper::new(beginning.store, &engine)?;
    let begin = Instant::now();
    keeper.restore(&mut engine, &args.name)?;
    let time = begin.elapsed();
    let next = engine.logits().map(argmax);
    let piece = next.and_then(|id| engine.model().tokenizer().token_bytes(id)).map(String::from_utf8_lossy);
    if args.json {
        let ms = (time.as_secs_f64() * 1e6).round() / 1e3;
        output.json(&json!({ "name": args.name, "tokens": engine.position(), "restore_ms": ms, "next_id": next, "next": piece }))?;
    } else {
        output.line(format_args!(
            "restored '{}': {} tokens in {:.1} ms",
            args.name,
            engine.position(),
            time.as_secs_f64() * 1e3
        ))?;
        if let (Some(id), Some(piece)) = (next, &piece) {
            output.line(format_args!("most likely next: {piece:?}, id {id}"))?;
        }
    }
    records.finish(engine)
}

fn delete(args: &SessionDeleteArgs) -> Result<()> {
    let deleted = existing(&args.dir.session_dir)?.delete(&args.name, args.reparent);
    let needed = matches!(deleted, Err(SessionError::Needed { .. }));
    deleted.map_err(|error| match needed {
        true => anyhow!("{error}; --reparent gives them what they need of it"),
        false => error.into(),
    })
}

fn list(args: &SessionListArgs, output: &mut Output) -> Result<()> {
    let entries = existing(&args.dir.session_dir)?.list()?;
    if args.json {
        let describe = |entry: &crate::state::Entry| match &entry.info {
            Ok(info) => info.to_json(),
            Err(error) => json!({ "name": entry.name, "bytes": entry.bytes, "error": error.to_string() }),
        };
        return output.json(&json!({ "sessions": entries.iter().map(describe).collect::<Value>() }));
    }
    for entry in entries {
        match &entry.info {
            Ok(info) => {
                let parent = info.chain.first().map_or(String::new(), |link| match &link.name {
                    Some(name) => format!(", on '{name}'"),
                    None => ", on one that is not here".to_owned(),
                });
                let (tokens, bytes, used) = (info.position, entry.bytes, age(info.last_used));
                output.line(format_args!("{}  {tokens} tokens, {bytes} bytes, used {used} ago{parent}", entry.name))?;
            }
            Err(error) => output.line(format_args!("{}  {} bytes, unusable: {error}", entry.name, entry.bytes))?,
        }
    }
    Ok(())
}

fn prune(args: &SessionPruneArgs, output: &mut Output) -> Result<()> {
    let age = args.max_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 3600));
    for name in existing(&args.dir.session_dir)?.prune(args.max_bytes, age)? {
        output.line(format_args!("deleted '{name}'"))?;
    }
    Ok(())
}

/// Time since then, in one unit.
fn age(time: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(time).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}
