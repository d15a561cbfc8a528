//! `chat`: a conversation in the terminal, or over a pipe.

use std::io::{IsTerminal, Write};

use anyhow::{Result, bail};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::args::ChatArgs;
use super::engine::{CONTEXT, Opened, open_engine, open_model};
use super::generate::{Finish, generate};
use super::output::Output;
use super::run::summary;
use super::{Done, interrupt};
use crate::exec::Engine;
use crate::text::{ChatTemplate, Message, RenderOptions, TextError};

const HELP: &str = "\
/help     this text
/reset    forget the conversation
/exit     leave, as Ctrl-D does
A line that ends with \\ goes on in the next one. Ctrl-C stops an answer and keeps what was said of it.";

/// What was said so far.
struct Conversation {
    template: ChatTemplate,
    thinking: Option<bool>,
    system: Vec<Message>,
    turns: Vec<Message>,
}

impl Conversation {
    /// Token ids of the whole conversation, ready for the next answer.
    fn ids(&self, engine: &Engine) -> Result<Vec<u32>> {
        let messages: Vec<Message> = self.system.iter().chain(&self.turns).cloned().collect();
        let options = RenderOptions { add_generation_prompt: true, enable_thinking: self.thinking };
        super::run::prompt_ids(engine.model(), &self.template.render(&messages, options)?)
    }
}

pub fn chat(args: &ChatArgs, output: &mut Output) -> Result<Done> {
    let model = open_model(&args.model)?;
    let Some(template) = model.chat_template()? else {
        bail!("{}: expected a key `tokenizer.chat_template`, found none", args.model.display());
    };
    let limit = model.bound().spec.context_length;
    let context = args.ctx.unwrap_or(limit.min(CONTEXT));
    let Opened { mut engine, records, .. } = open_engine(model, &args.engine, context)?;
    let message = |role: &str, content: &str| Message { role: role.to_owned(), content: content.to_owned() };
    let mut conversation = Conversation {
        template,
        thinking: args.no_think.then_some(false),
        system: args.system.iter().map(|text| message("system", text)).collect(),
        turns: Vec::new(),
    };
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
                conversation.turns.clear();
                engine.reset()?;
                continue;
            }
            "/exit" | "/quit" => break,
            command if command.starts_with('/') && !command.contains(char::is_whitespace) => {
                output.line(format_args!("`{command}` is not a command; /help lists them"))?;
                continue;
            }
            _ => {}
        }
        conversation.turns.push(message("user", &text));
        if let Err(error) = answer(&mut conversation, &mut engine, args.n, output) {
            // The message stays out of the history, so that a shorter one can be tried.
            conversation.turns.pop();
            // Nobody can read the answers any more, or the template is still at work and has to be ended.
            if error.is::<std::io::Error>() || matches!(error.downcast_ref(), Some(TextError::TemplateTime { .. })) {
                return Err(error);
            }
            eprintln!("error: {error:#}");
        }
    }
    records.finish(engine)?;
    Ok(Done::Finished)
}

/// Computes the part of the conversation that is new, answers, and keeps the answer.
fn answer(conversation: &mut Conversation, engine: &mut Engine, n: usize, output: &mut Output) -> Result<()> {
    let ids = conversation.ids(engine)?;
    let context = engine.plan().options.context;
    if ids.len() >= context {
        bail!(
            "the conversation has {} tokens: expected fewer than {context}, the context's length; /reset starts anew",
            ids.len()
        );
    }
    // A recurrent state cannot go back: what is not a continuation is computed from the start.
    let known = if ids.starts_with(engine.ids()) && ids.len() > engine.position() { engine.position() } else { 0 };
    if known == 0 {
        engine.reset()?;
    }
    interrupt::listen();
    let answer = generate(engine, &ids[known..], n, |_, piece| output.text(piece))?;
    output.line("")?;
    if std::io::stderr().is_terminal() {
        eprintln!("({})", summary(&answer));
    }
    if answer.finish == Finish::Context {
        eprintln!("the context is full: {context} tokens; /reset starts anew");
    }
    conversation.turns.push(Message { role: "assistant".to_owned(), content: answer.text });
    Ok(())
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
