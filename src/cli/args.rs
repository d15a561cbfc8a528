//! Arguments of every command; no effects.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::model::KvType;
use crate::plan::Split;

/// Runs Qwen's hybrid models on Intel Arc Pro B70 cards, or slower on a CPU, with the same bits.
#[derive(Debug, Parser)]
#[command(name = "bankshot", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer a few prompts with the small model that is part of the program
    Demo(DemoArgs),
    /// Continue a prompt, choosing the most likely token each time
    Run(RunArgs),
    /// Talk to a model
    Chat(ChatArgs),
    /// List the devices to compute on, and what Level Zero reports about GPUs
    Devices(DevicesArgs),
    /// Print what is in a model file: keys, tensors, parameters, bytes a token, state a sequence
    Inspect(InspectArgs),
    /// Print how a model would be laid out and computed: memory, operations, an estimate; on any machine, for any cards
    Plan(PlanArgs),
    /// Print the token ids of a text
    Tokenize(TokenizeArgs),
    /// Print or store the logits of every position of a token sequence
    Logits(LogitsArgs),
    /// Measure how well a model predicts a text
    Perplexity(PerplexityArgs),
    /// Save, look at, restore and delete the exact state of sequences
    #[command(subcommand)]
    Session(SessionCommand),
    /// Replay a routing trace, to see how often other choices of resident experts would have hit
    ResidencySim(ResidencySimArgs),
    /// Build kernel modules for a device into the cache folder; starts do this by themselves
    #[command(hide = true)]
    BuildKernels(BuildKernelsArgs),
}

#[derive(Debug, ClapArgs)]
pub struct BuildKernelsArgs {
    /// Device: its number, `cpu` or `gpu`
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    pub modules: Vec<String>,
}

/// Where and how a model runs.
#[derive(Clone, Debug, ClapArgs)]
pub struct EngineArgs {
    /// Cards: numbers of devices, `cpu` or `gpu`, with commas between them; `gpu:2` are the first two GPUs, `cpu:2` two
    /// parts of the processor. Without it the first GPU, else the CPU
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    #[command(flatten)]
    pub plan: PlanOptions,
    /// GGUF file whose n-gram table is read instead of the model's: a copy of the model, or of the part with the table, on a faster disk
    #[arg(long, value_name = "F")]
    pub ngram_table: Option<PathBuf>,
    /// Memory for rows of the n-gram table: bytes, or a number with K, M or G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_bytes)]
    pub ngram_cache: u64,
    /// Before loading, compare the model's files with a list of SHA-256 sums, as `sha256sum` prints it
    #[arg(long, value_name = "FILE")]
    pub check_sums: Option<PathBuf>,
    /// Begin with the experts resident that this profile says are used most
    #[arg(long, value_name = "FILE")]
    pub expert_profile: Option<PathBuf>,
    /// At the end, store how often each expert was used; needs experts that are not all resident
    #[arg(long, value_name = "FILE")]
    pub save_expert_profile: Option<PathBuf>,
    /// Record which experts every token chose, for `residency-sim`
    #[arg(long, value_name = "FILE")]
    pub routing_trace: Option<PathBuf>,
}

/// What the user decides of a plan.
#[derive(Clone, Debug, ClapArgs)]
pub struct PlanOptions {
    /// How several cards share the work; without it the plan's own estimate decides. Results do not depend on it
    #[arg(long, value_enum)]
    pub split: Option<SplitArg>,
    /// Most memory of each card for routed experts, as 24G: the others are read from host memory, or from the file when that
    /// is short. More than a card has free is refused; without it they take what is free. Results do not depend on it
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub expert_budget: Option<u64>,
    /// Most host memory for routed experts
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub host_expert_budget: Option<u64>,
    /// Memory of each card for snapshots of sequences, from which a prompt continues that begins like an earlier one
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub bank_budget: Option<u64>,
    /// Host memory for snapshots of sequences, for all cards together; without either, `chat` takes up to 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub host_bank_budget: Option<u64>,
    /// Tokens of a prompt after which a snapshot is taken, beside those behind turns; 0 for none
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub bank_every: usize,
    /// Type of cached keys and values
    #[arg(long, value_enum, default_value_t = KvArg::F16)]
    pub kv: KvArg,
    /// Most prompt tokens that are computed together; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = crate::plan::DEFAULT_CHUNK)]
    pub chunk: usize,
}

/// A number of bytes, in units of 1024 with K, M or G.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let shift = match text.chars().last().map(|unit| unit.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "expected bytes below 2^64, or such a number with K, M or G, as 64M".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum KvArg {
    F16,
    F32,
}

impl From<KvArg> for KvType {
    fn from(kv: KvArg) -> KvType {
        match kv {
            KvArg::F16 => KvType::F16,
            KvArg::F32 => KvType::F32,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SplitArg {
    /// Each card computes some layers
    Layer,
    /// Each card computes some rows of every large matrix
    Tensor,
}

impl From<SplitArg> for Split {
    fn from(split: SplitArg) -> Split {
        match split {
            SplitArg::Layer => Split::Layer,
            SplitArg::Tensor => Split::Tensor,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub struct DemoArgs {
    /// Most tokens of an answer
    #[arg(short, value_name = "N", default_value_t = 64)]
    pub n: usize,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// A text given as an argument or as a file.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct PromptArgs {
    /// The prompt
    #[arg(short, long = "prompt", value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Read the prompt from a file, `-` for standard input
    #[arg(long, value_name = "F")]
    pub prompt_file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    /// GGUF file
    pub model: PathBuf,
    /// The prompt; with --restore what follows the session, if anything
    #[arg(short, long, value_name = "TEXT", required_unless_present_any = ["prompt_file", "restore"])]
    pub prompt: Option<String>,
    /// Read the prompt from a file, `-` for standard input
    #[arg(long, value_name = "F", conflicts_with = "prompt")]
    pub prompt_file: Option<PathBuf>,
    /// Put the prompt into the model's chat template as a user's message
    #[arg(long, conflicts_with = "restore")]
    pub chat: bool,
    /// System message in front of the user's; only with --chat
    #[arg(long, value_name = "S", requires = "chat")]
    pub system: Option<String>,
    /// Most tokens to generate
    #[arg(short, value_name = "N", default_value_t = 128)]
    pub n: usize,
    /// Tokens of context; without it as many as prompt and answer need
    #[arg(long, value_name = "N")]
    pub ctx: Option<usize>,
    #[command(flatten)]
    pub session: SessionArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print token ids instead of text
    #[arg(long)]
    pub ids: bool,
    /// Compute everything a second time, and print what each operation takes
    #[arg(long, conflicts_with_all = ["restore", "save"])]
    pub breakdown: bool,
    /// Print one JSON object as the last line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ChatArgs {
    /// GGUF file
    pub model: PathBuf,
    /// System message
    #[arg(long, value_name = "S", conflicts_with = "restore")]
    pub system: Option<String>,
    /// Ask the chat template to leave out the model's thoughts
    #[arg(long)]
    pub no_think: bool,
    /// Most tokens of an answer
    #[arg(short, value_name = "N", default_value_t = 1024)]
    pub n: usize,
    /// Tokens of context; without it the model's own, at most 8192
    #[arg(long, value_name = "N")]
    pub ctx: Option<usize>,
    #[command(flatten)]
    pub session: SessionArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Saved sessions that a command begins with and leaves behind.
#[derive(Debug, ClapArgs)]
pub struct SessionArgs {
    /// Folder of saved sessions
    #[arg(long, value_name = "D")]
    pub session_dir: Option<PathBuf>,
    /// Save the session under this name: at the end, in `chat` after every turn
    #[arg(long, value_name = "NAME", requires = "session_dir")]
    pub save: Option<String>,
    /// Begin with this session
    #[arg(long, value_name = "NAME", requires = "session_dir")]
    pub restore: Option<String>,
    /// Replace a session of that name; one that the command began with is replaced without it
    #[arg(long, requires = "save")]
    pub replace: bool,
    /// Compress what is saved
    #[arg(long, requires = "save")]
    pub compress: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Compute a prompt and save the sequence
    Save(SessionSaveArgs),
    /// Print what a saved session is, and with --model whether that model takes it; needs no device
    Inspect(SessionInspectArgs),
    /// Restore a session onto the device, and print what that took and which token comes next
    Restore(SessionRestoreArgs),
    /// Delete a session that no other one needs
    Delete(SessionDeleteArgs),
    /// List all saved sessions
    List(SessionListArgs),
    /// Delete the sessions that were not used for longest, until the rest keeps the limits
    Prune(SessionPruneArgs),
}

#[derive(Debug, ClapArgs)]
pub struct SessionDir {
    /// Folder of saved sessions
    #[arg(long, value_name = "D")]
    pub session_dir: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub struct SessionSaveArgs {
    /// GGUF file
    pub model: PathBuf,
    /// Name of the session
    pub name: String,
    #[command(flatten)]
    pub dir: SessionDir,
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// Session that the prompt follows: what is saved is then only what it has more
    #[arg(long, value_name = "NAME")]
    pub restore: Option<String>,
    /// Replace a session of that name
    #[arg(long)]
    pub replace: bool,
    /// Compress what is saved
    #[arg(long)]
    pub compress: bool,
    /// Tokens of context; without it as many as the session has
    #[arg(long, value_name = "N")]
    pub ctx: Option<usize>,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SessionInspectArgs {
    /// Name of the session
    pub name: String,
    #[command(flatten)]
    pub dir: SessionDir,
    /// GGUF file to compare with
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Type of cached keys and values to compare with
    #[arg(long, value_enum, default_value_t = KvArg::F16, requires = "model")]
    pub kv: KvArg,
    /// Read everything and compare all sums
    #[arg(long)]
    pub verify: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SessionRestoreArgs {
    /// GGUF file
    pub model: PathBuf,
    /// Name of the session
    pub name: String,
    #[command(flatten)]
    pub dir: SessionDir,
    /// Tokens of context; without it as many as the session has
    #[arg(long, value_name = "N")]
    pub ctx: Option<usize>,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SessionDeleteArgs {
    /// Name of the session
    pub name: String,
    #[command(flatten)]
    pub dir: SessionDir,
    /// Give what other sessions need of it to them
    #[arg(long)]
    pub reparent: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SessionListArgs {
    #[command(flatten)]
    pub dir: SessionDir,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SessionPruneArgs {
    #[command(flatten)]
    pub dir: SessionDir,
    /// Most bytes of all sessions together
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, required_unless_present = "max_days")]
    pub max_bytes: Option<u64>,
    /// Most days since a session was used
    #[arg(long, value_name = "N")]
    pub max_days: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub struct DevicesArgs {
    /// Level Zero loader to use instead of the system's `libze_loader.so.1`
    #[arg(long, value_name = "FILE")]
    pub loader: Option<PathBuf>,
    /// Folder that holds `sys` and `dev`
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Measure these cards, named as for `--device` of `run`, and print them as a file for `plan --cards`
    #[arg(long, value_name = "D", conflicts_with_all = ["loader", "root", "json"])]
    pub cards: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct InspectArgs {
    /// GGUF file
    pub model: PathBuf,
    /// Also list every tensor
    #[arg(long)]
    pub tensors: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// GGUF file
    pub model: PathBuf,
    /// Cards and host to plan for, from a file in TOML, instead of this machine's: no device is touched
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    pub cards: Option<PathBuf>,
    /// Cards of this machine, as for `run`
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    /// Tokens of context; without it the model's own, at most 8192
    #[arg(long, value_name = "N")]
    pub ctx: Option<usize>,
    #[command(flatten)]
    pub options: PlanOptions,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct TokenizeArgs {
    /// GGUF file
    pub model: PathBuf,
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// Treat the text of special tokens as ordinary text
    #[arg(long)]
    pub no_special: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct LogitsArgs {
    /// GGUF file
    pub model: PathBuf,
    /// Token ids, separated by commas
    #[arg(long, value_name = "1,2,3", value_delimiter = ',', required = true)]
    pub ids: Vec<u32>,
    /// Store float32 logits of every position, shape (positions, vocabulary), in NumPy's format
    #[arg(long, value_name = "FILE.npy")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PerplexityArgs {
    /// GGUF file
    pub model: PathBuf,
    /// Text file
    #[arg(long, value_name = "F")]
    pub text: PathBuf,
    /// Tokens of a window; the second half of each is scored
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub ctx: usize,
    /// Score only the first N windows
    #[arg(long, value_name = "N")]
    pub windows: Option<usize>,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ResidencySimArgs {
    /// Routing trace
    pub trace: PathBuf,
    /// Slots of each layer, one replay for each number; without it 1/8, 1/4, 1/2 and 3/4 of the experts
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub slots: Vec<usize>,
    /// Most bytes that are swapped after a step, over all layers
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_bytes)]
    pub budget: u64,
    /// Expert profile to begin with; without it the static choice is counted over the whole trace, and the others begin
    /// with the lowest ids
    #[arg(long, value_name = "F")]
    pub profile: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
