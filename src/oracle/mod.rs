//! The arithmetic contract of `docs/numerics.md` as slow scalar code: what every kernel has to equal bit for bit.
//!
//! Each family of operations has a file of functions over plain slices; [`OracleSession`] runs the whole network with
//! them. Nothing here is tuned beyond what lets a small model run at a bearable speed.

/// Compiles a function a second time for x86-64 processors with fused multiply-add, and picks at run time. Without the
/// instruction `mul_add` is a library call of the same result. What the body calls has to be inlined into it, so bodies
/// are plain loops: closures in iterator chains often stay apart.
macro_rules! with_fma {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        $visibility fn $name($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body($($arg: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn fused($($arg: $type),*) $(-> $result)? {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the features that the function is compiled for.
                return unsafe { fused($($arg),*) };
            }
            body($($arg),*)
        }
    };
}

pub mod attention;
mod forward;
pub mod gdn;
pub mod linear;
pub mod mix;
pub mod moe;
pub mod ple;
pub mod scalar;
pub mod sums;

pub use forward::{BlockState, LayerState, OracleSession};
