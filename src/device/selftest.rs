//! The canary: arithmetic whose bits must be the same on every device.

use super::status::check;
use super::{DeviceError, Kernel, Queue, Span, Status, sys};

/// Enqueues the canary kernel over `n` elements: `a` and `b` hold n floats, `out` holds `XK_CANARY_OUTPUTS` times n.
pub fn canary(queue: &Queue, kernel: &Kernel, n: u32, a: &Span, b: &Span, out: &Span) -> Result<(), DeviceError> {
    let bytes = u64::from(n) * 4;
    for (name, span, needed) in
        [("a", a, bytes), ("b", b, bytes), ("out", out, bytes * u64::from(sys::XK_CANARY_OUTPUTS))]
    {
        if span.bytes() < needed {
            let text = format!("canary: {name}: expected at least {needed} bytes, got {}", span.bytes());
            return Err(DeviceError { status: Status::VALUE, text });
        }
        queue.keep(span);
    }
    queue.keep_kernel(kernel);
    let args = sys::xk_canary_args {
        struct_size: size_of::<sys::xk_canary_args>() as u32,
        n,
        kernel: kernel.raw(),
        a: a.ptr().cast(),
        b: b.ptr().cast(),
        out: out.ptr().cast(),
    };
    // SAFETY: the spans are large enough and their arenas live, and destroying those waits for this queue.
    check(unsafe { sys::xk_op_canary(queue.raw(), &args) })
}
