//! Continues a prompt, and goes on from a saved session. Usage: story FOLDER [MODEL.gguf]

use std::error::Error;
use std::path::Path;

use bankshot::session::{OpenOptions, SaveOptions, SessionOptions, SharedEngine};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().unwrap_or_else(|| ".".to_owned());
    let mut options = OpenOptions::default();
    options.device = Some("cpu".to_owned());
    options.context = Some(256);
    // Without a model's file, the small model that is part of the library.
    let engine = match args.next() {
        Some(model) => SharedEngine::open(Path::new(&model), options, &mut |_| {})?,
        None => SharedEngine::open_static(bankshot::demo::MODEL, options, &mut |_| {})?,
    };
    let folder = engine.folder(Path::new(&folder))?;
    let mut first = engine.session(SessionOptions::default());
    first.feed_text("Once upon a time")?;
    for event in first.tokens(8) {
        print!("{}", event?.text);
    }
    first.save(&folder, "story", SaveOptions::default())?;
    let mut second = engine.session(SessionOptions::default());
    second.restore(&folder, "story")?;
    for event in second.tokens(8) {
        print!("{}", event?.text);
    }
    println!();
    engine.close(std::time::Duration::from_secs(30))?;
    Ok(())
}
