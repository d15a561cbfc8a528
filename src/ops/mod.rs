//! Launches of the kernels, one function an operation family of `include/xk_ops.h`.
//!
//! The argument structs hold device addresses, which only the C side dereferences, on the device. Whoever fills them vouches that they lie in live arenas;
//! `exec` takes all of them from a plan whose regions were booked for these operations.

use crate::device::{DeviceError, Queue, check, sys};

macro_rules! launches {
    ($($(#[$doc:meta])* $name:ident($args:ident) = $call:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The addresses in `args` lie in live arenas of the queue's card and have the shapes that the struct states, until the queue has done the work.
            ///
            /// # Errors
            /// When an argument is out of range or the launch fails.
            pub unsafe fn $name(queue: &Queue, mut args: sys::$args) -> Result<(), DeviceError> {
                args.struct_size = size_of::<sys::$args>() as u32;
                // SAFETY: the queue is live, the struct says its own size, and the caller vouches for its addresses.
                check(unsafe { sys::$call(queue.raw(), &args) })
            }
        )*
    };
}

launches! {
    /// A matrix, or the chosen experts' matrices, times rows of activations.
    matmul(xk_matmul_args) = xk_op_matmul;
    /// The embedding, spread over the streams.
    hyper_start(xk_hyper_start_args) = xk_op_hyper_start;
    /// A block's output added to the streams, and their norms.
    hyper_norm(xk_hyper_norm_args) = xk_op_hyper_norm;
    /// The streams mixed to one vector.
    hyper_mix(xk_hyper_mix_args) = xk_op_hyper_mix;
    /// An element-wise step.
    act(xk_act_args) = xk_op_act;
    /// Convolution and gates of the delta net.
    gdn_conv(xk_gdn_conv_args) = xk_op_gdn_conv;
    /// Its recurrence.
    gdn_step(xk_gdn_step_args) = xk_op_gdn_step;
    /// Its gated norm.
    gdn_norm(xk_gdn_norm_args) = xk_op_gdn_norm;
    /// Attention, with sparse selection where the layer has it.
    attention(xk_attention_args) = xk_op_attention;
    /// The experts of each token, and the plan that groups them.
    moe_route(xk_moe_route_args) = xk_op_moe_route;
    /// The sum of the experts.
    moe_combine(xk_moe_combine_args) = xk_op_moe_combine;
    /// The n-gram embedding of a layer.
    ple(xk_ple_args) = xk_op_ple;
}
