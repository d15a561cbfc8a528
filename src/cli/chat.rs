//! `chat`: a conversation in the terminal, or over a pipe.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result, bail};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde::{Deserialize, Serialize};

use super::args::ChatArgs;
use super::engine::{CONTEXT, Opened, open_engine_with, open_model};
use super::generate::{Finish, generate};
use super::output::Output;
use super::run::{check_length, summary};
use super::session::{Beginning, check_save, take_in};
use super::{Done, interrupt};
use crate::exec::{Engine, EngineError};
use crate::load::Model;
use crate::session::{KeepError, Keeper, SpareBank, TurnFile};
use crate::state::Store;
use crate::text::{ChatTemplate, Message, RenderOptions, TextError};

const HELP: &str = "\
/help     this text
/reset    forget the conversation
/exit     leave, as Ctrl-D does
A line that ends with \\ goes on in the next one. Ctrl-C stops an answer and keeps what was said of it.";

/// What was said so far. This is also what a saved session has beside its state.
#[derive(Serialize, Deserialize)]
struct Conversation {
    thinking: Option<bool>,
    system: Vec<Message>,
    turns: Vec<Message>,
}

impl Conversation {
    /// Token ids of the whole conversation, ready for the next answer.
    fn ids(&self, model: &Model, template: &ChatTemplate) -> Result<Vec<u32>> {
        let messages: Vec<Message> = self.system.iter().chain(&self.turns).cloned().collect();
        let options = RenderOptions { add_generation_prompt: true, enable_thinking: self.thinking };
        super::run::prompt_ids(model, &template.render(&messages, options)?)
    }
}

/// The conversation's engine, and where it is saved after every turn.
struct Talk {
    engine: Engine,
    template: ChatTemplate,
    conversation: Conversation,
    file: Option<(Keeper, TurnFile)>,
}

pub fn chat(args: &ChatArgs, output: &mut Output) -> Result<Done> {
    let model = open_model(&args.model)?;
    let Some(template) = model.chat_template()? else {
        bail!("{}: expected a key `tokenizer.chat_template`, found none", args.model.display());
    };
    let beginning = Beginning::of(args.session.session_dir.as_deref(), args.session.restore.as_deref())?;
    let limit = model.bound().spec.context_length;
    let context = args.ctx.unwrap_or(limit.min(CONTEXT));
    if let Some(beginning) = &beginning {
        check_length(beginning.tokens, 0, context.min(limit))?;
    }
    let Opened { engine, records, .. } = open_engine_with(model, &args.engine, context, SpareBank::Yes)?;
    let mut talk = Talk::begin(engine, template, args, beginning)?;
    let mut reader = Reader::new()?;
    if reader.is_terminal() {
        output.line("Type a message, or /help.")?;
    }
    while let Some(text) = reader.read()? {
        match text.trim() {
            "" => continue,
            "/help" => {
                output.line(HELP)?;
                continue;
            }
            "/reset" => {
                talk.conversation.turns.clear();
                talk.engine.reset()?;
                continue;
            }
            "/exit" | "/quit" => break,
            command if command.starts_with('/') && !command.contains(char::is_whitespace) => {
                output.line(format_args!("`{command}` is not a command; /help lists them"))?;
                continue;
            }
            _ => {}
        }
        talk.conversation.turns.push(message("user", &text));
        if let Err(error) = talk.answer(args.n, output) {
            // The message stays out of the history, so that a shorter one can be tried.
            talk.conversation.turns.pop();
            if ends_chat(&error) {
                return Err(error);
            }
            eprintln!("error: {error:#}");
            continue;
        }
        // What was said is on the screen: a full disk ends no conversation.
        if let Err(error) = talk.save() {
            if ends_chat(&error) {
                return Err(error);
            }
            eprintln!("error: this turn is not saved: {error:#}");
        }
    }
    records.finish(talk.engine)?;
    Ok(Done::Finished)
}

fn message(role: &str, content: &str) -> Message {
    Message { role: role.to_owned(), content: content.to_owned() }
}

/// Whether nothing can be answered any more, or nobody can read it, or the template is still at work and has to be ended.
fn ends_chat(error: &anyhow::Error) -> bool {
    let engine = match error.downcast_ref::<KeepError>() {
        Some(KeepError::Engine(error)) => Some(error),
        _ => error.downcast_ref::<EngineError>(),
    };
    let goes_on = |error: &EngineError| {
        matches!(error, EngineError::Row(_) | EngineError::ContextFull { .. } | EngineError::ImageMemory { .. })
    };
    error.is::<std::io::Error>()
        || matches!(error.downcast_ref(), Some(TextError::TemplateTime { .. }))
        || engine.is_some_and(|error| !goes_on(error))
}

impl Talk {
    /// Begins a conversation, or goes on with a saved one.
    fn begin(
        mut engine: Engine,
        template: ChatTemplate,
        args: &ChatArgs,
        beginning: Option<Beginning<'_>>,
    ) -> Result<Talk> {
        let mut conversation = Conversation {
            thinking: args.no_think.then_some(false),
            system: args.system.iter().map(|text| message("system", text)).collect(),
            turns: Vec::new(),
        };
        let mut file = None;
        let name = args.session.save.as_ref();
        if let Some(beginning) = beginning {
            let (from, keeper) = (beginning.name, Keeper::new(beginning.store, &engine)?);
            let compress = args.session.compress;
            check_save(&keeper, &args.session)?;
            let (same, restored) = TurnFile::restore(&keeper, &mut engine, from, compress)?;
            let Some(notes) = restored.notes else {
                bail!(
                    "session '{from}': expected the messages of a conversation, found none: it was not saved by `chat`"
                );
            };
            let saved: Conversation = serde_json::from_slice(&notes)
                .with_context(|| format!("session '{from}': expected the messages of a conversation"))?;
            conversation = Conversation { thinking: conversation.thinking.or(saved.thinking), ..saved };
            file = name.map(|name| match name == from {
                true => (keeper, same),
                false => (keeper, TurnFile::new(name, compress, Some(restored.base))),
            });
        } else if let (Some(name), Some(dir)) = (name, &args.session.session_dir) {
            let keeper = Keeper::new(Store::open(dir)?, &engine)?;
            check_save(&keeper, &args.session)?;
            file = Some((keeper, TurnFile::new(name, args.session.compress, None)));
        }
        Ok(Talk { engine, template, conversation, file })
    }

    /// Computes the part of the conversation that is new, answers, and keeps the answer.
    fn answer(&mut self, n: usize, output: &mut Output) -> Result<()> {
        let ids = self.conversation.ids(self.engine.model(), &self.template)?;
        let context = self.engine.plan().options.context;
        if ids.len() >= context {
            bail!(
                "the conversation has {} tokens: expected fewer than {context}, the context's length; /reset starts anew",
                ids.len()
            );
        }
        interrupt::listen();
        let answer = generate(&mut self.engine, &ids, n, |_, piece| output.text(piece))?;
        output.line("")?;
        if std::io::stderr().is_terminal() {
            eprintln!("({})", summary(&answer));
        }
        if answer.finish == Finish::Context {
            eprintln!("the context is full: {context} tokens; /reset starts anew");
        }
        take_in(&mut self.engine, &answer)?;
        self.engine.snapshot()?;
        self.conversation.turns.push(message("assistant", &answer.text));
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        let Some((keeper, file)) = &mut self.file else { return Ok(()) };
        let notes = serde_json::to_vec(&self.conversation)?;
        Ok(file.save(keeper, &mut self.engine, Some(&notes))?)
    }
}

/// Lines from a terminal with editing and history, or plainly from a pipe.
enum Reader {
    Terminal(Box<DefaultEditor>),
    Pipe,
}

impl Reader {
    fn new() -> Result<Reader> {
        let stdin = std::io::stdin();
        Ok(if stdin.is_terminal() { Reader::Terminal(Box::new(DefaultEditor::new()?)) } else { Reader::Pipe })
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Reader::Terminal(_))
    }

    /// One message, lines joined where one ends with a backslash; `None` at the end of input.
    fn read(&mut self) -> Result<Option<String>> {
        let mut text = String::new();
        loop {
            let line = match self {
                Reader::Pipe => {
                    let mut line = String::new();
                    if std::io::stdin().read_line(&mut line)? == 0 {
                        return Ok((!text.is_empty()).then_some(text));
                    }
                    line.trim_end_matches(['\n', '\r']).to_owned()
                }
                Reader::Terminal(editor) => match editor.readline(if text.is_empty() { "> " } else { ". " }) {
                    Ok(line) => line,
                    Err(ReadlineError::Interrupted) => {
                        text.clear();
                        continue;
                    }
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(error.into()),
                },
            };
            if let Some(part) = line.strip_suffix('\\') {
                text.push_str(part);
                text.push('\n');
                continue;
            }
            text.push_str(&line);
            if let Reader::Terminal(editor) = self {
                // A history that cannot take the line costs an arrow key, no more.
                let _ = editor.add_history_entry(&text);
                std::io::stdout().flush()?;
            }
            return Ok(Some(text));
        }
    }
}
