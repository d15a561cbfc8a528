//! Work on several threads whose results one thread takes.

use std::sync::mpsc;
use std::thread::Builder;

/// Runs `work` on as many as `threads` threads, and gives what they emit to `each` on this one. Where no thread can be
/// started, `work` runs on this one. Emitting gives `false` when nothing more is wanted.
///
/// `each` is dropped before the threads are waited for, so that work can wait for something that it owns.
///
/// # Errors
/// The first of `each`.
pub(super) fn gather<T: Send, E>(
    threads: usize,
    work: &(impl Fn(&mut dyn FnMut(T) -> bool) + Sync),
    mut each: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    std::thread::scope(move |scope| {
        let (sender, receiver) = mpsc::channel();
        let start = |_: &usize| {
            let sender = sender.clone();
            let run = move || work(&mut |item| sender.send(item).is_ok());
            Builder::new().name("load".to_owned()).spawn_scoped(scope, run).is_ok()
        };
        let started = (0..threads).take_while(start).count();
        drop(sender);
        if started > 0 {
            return receiver.into_iter().try_for_each(each);
        }
        let mut result = Ok(());
        work(&mut |item| {
            result = each(item);
            result.is_ok()
        });
        result
    })
}
