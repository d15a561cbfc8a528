// Made by tests/bindings.rs from include/xk_ops.h; see there. Do not edit.

pub const XK_ABI_MAJOR: u32 = 1;
pub const XK_ABI_MINOR: u32 = 1;
pub const XK_OK: u32 = 0;
pub const XK_ERR_NULL: u32 = 1;
pub const XK_ERR_VALUE: u32 = 2;
pub const XK_ERR_STRUCT: u32 = 3;
pub const XK_ERR_UNSUPPORTED: u32 = 4;
pub const XK_ERR_NOT_FOUND: u32 = 5;
pub const XK_ERR_STATE: u32 = 6;
pub const XK_ERR_HOST_MEMORY: u32 = 10;
pub const XK_ERR_DEVICE_MEMORY: u32 = 11;
pub const XK_ERR_BUILD: u32 = 20;
pub const XK_ERR_DEVICE: u32 = 21;
pub const XK_ERR_DEVICE_LOST: u32 = 22;
pub const XK_ERR_INTERNAL: u32 = 90;
pub const XK_MEMORY_DEVICE: u32 = 0;
pub const XK_MEMORY_HOST: u32 = 1;
pub const XK_QUEUE_PROFILING: u32 = 1;
pub const XK_FAULT_NONE: u32 = 0;
pub const XK_FAULT_ALLOCATION: u32 = 1;
pub const XK_FAULT_LAUNCH: u32 = 2;
pub const XK_FAULT_COPY: u32 = 3;
pub const XK_FAULT_LOST: u32 = 4;
pub const XK_FAULT_STALL: u32 = 5;
pub const XK_FAULT_PEER: u32 = 6;
pub const XK_FAULT_IDLE: u32 = 7;
pub const XK_CANARY_OUTPUTS: u32 = 6;
pub const XK_ACT_SILU: u32 = 0;
pub const XK_ACT_SWIGLU: u32 = 1;
pub const XK_ACT_COPY: u32 = 2;
pub type xk_status = i32;
#[repr(C)]
#[derive(Debug)]
pub struct xk_card {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct xk_arena {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct xk_queue {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct xk_event {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct xk_module {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct xk_kernel {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct xk_graph {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_device_info {
    pub struct_size: u32,
    pub is_cpu: u32,
    pub compute_units: u32,
    pub sub_group_sizes: u32,
    pub has_sub_group_32: u32,
    pub reserved: u32,
    pub global_bytes: u64,
    pub max_alloc_bytes: u64,
    pub local_bytes: u64,
    pub name: [::core::ffi::c_char; 128usize],
    pub vendor: [::core::ffi::c_char; 64usize],
    pub driver: [::core::ffi::c_char; 64usize],
    pub backend: [::core::ffi::c_char; 32usize],
    pub free_bytes: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_device_info"][::core::mem::size_of::<xk_device_info>() - 344usize];
    ["Alignment of xk_device_info"][::core::mem::align_of::<xk_device_info>() - 8usize];
    ["Offset of field: xk_device_info::struct_size"][::core::mem::offset_of!(xk_device_info, struct_size) - 0usize];
    ["Offset of field: xk_device_info::is_cpu"][::core::mem::offset_of!(xk_device_info, is_cpu) - 4usize];
    ["Offset of field: xk_device_info::compute_units"][::core::mem::offset_of!(xk_device_info, compute_units) - 8usize];
    ["Offset of field: xk_device_info::sub_group_sizes"]
        [::core::mem::offset_of!(xk_device_info, sub_group_sizes) - 12usize];
    ["Offset of field: xk_device_info::has_sub_group_32"]
        [::core::mem::offset_of!(xk_device_info, has_sub_group_32) - 16usize];
    ["Offset of field: xk_device_info::reserved"][::core::mem::offset_of!(xk_device_info, reserved) - 20usize];
    ["Offset of field: xk_device_info::global_bytes"][::core::mem::offset_of!(xk_device_info, global_bytes) - 24usize];
    ["Offset of field: xk_device_info::max_alloc_bytes"]
        [::core::mem::offset_of!(xk_device_info, max_alloc_bytes) - 32usize];
    ["Offset of field: xk_device_info::local_bytes"][::core::mem::offset_of!(xk_device_info, local_bytes) - 40usize];
    ["Offset of field: xk_device_info::name"][::core::mem::offset_of!(xk_device_info, name) - 48usize];
    ["Offset of field: xk_device_info::vendor"][::core::mem::offset_of!(xk_device_info, vendor) - 176usize];
    ["Offset of field: xk_device_info::driver"][::core::mem::offset_of!(xk_device_info, driver) - 240usize];
    ["Offset of field: xk_device_info::backend"][::core::mem::offset_of!(xk_device_info, backend) - 304usize];
    ["Offset of field: xk_device_info::free_bytes"][::core::mem::offset_of!(xk_device_info, free_bytes) - 336usize];
};
impl Default for xk_device_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct xk_card_desc {
    pub struct_size: u32,
    pub device_index: u32,
    pub part_count: u32,
    pub part_index: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_card_desc"][::core::mem::size_of::<xk_card_desc>() - 16usize];
    ["Alignment of xk_card_desc"][::core::mem::align_of::<xk_card_desc>() - 4usize];
    ["Offset of field: xk_card_desc::struct_size"][::core::mem::offset_of!(xk_card_desc, struct_size) - 0usize];
    ["Offset of field: xk_card_desc::device_index"][::core::mem::offset_of!(xk_card_desc, device_index) - 4usize];
    ["Offset of field: xk_card_desc::part_count"][::core::mem::offset_of!(xk_card_desc, part_count) - 8usize];
    ["Offset of field: xk_card_desc::part_index"][::core::mem::offset_of!(xk_card_desc, part_index) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_module_desc {
    pub struct_size: u32,
    pub kernel_count: u32,
    pub name: *const ::core::ffi::c_char,
    pub kernel_names: *const *const ::core::ffi::c_char,
    pub spirv: *const ::core::ffi::c_void,
    pub spirv_bytes: u64,
    pub source: *const ::core::ffi::c_char,
    pub source_bytes: u64,
    pub hash: *const ::core::ffi::c_char,
    pub cache_path: *const ::core::ffi::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_module_desc"][::core::mem::size_of::<xk_module_desc>() - 72usize];
    ["Alignment of xk_module_desc"][::core::mem::align_of::<xk_module_desc>() - 8usize];
    ["Offset of field: xk_module_desc::struct_size"][::core::mem::offset_of!(xk_module_desc, struct_size) - 0usize];
    ["Offset of field: xk_module_desc::kernel_count"][::core::mem::offset_of!(xk_module_desc, kernel_count) - 4usize];
    ["Offset of field: xk_module_desc::name"][::core::mem::offset_of!(xk_module_desc, name) - 8usize];
    ["Offset of field: xk_module_desc::kernel_names"][::core::mem::offset_of!(xk_module_desc, kernel_names) - 16usize];
    ["Offset of field: xk_module_desc::spirv"][::core::mem::offset_of!(xk_module_desc, spirv) - 24usize];
    ["Offset of field: xk_module_desc::spirv_bytes"][::core::mem::offset_of!(xk_module_desc, spirv_bytes) - 32usize];
    ["Offset of field: xk_module_desc::source"][::core::mem::offset_of!(xk_module_desc, source) - 40usize];
    ["Offset of field: xk_module_desc::source_bytes"][::core::mem::offset_of!(xk_module_desc, source_bytes) - 48usize];
    ["Offset of field: xk_module_desc::hash"][::core::mem::offset_of!(xk_module_desc, hash) - 56usize];
    ["Offset of field: xk_module_desc::cache_path"][::core::mem::offset_of!(xk_module_desc, cache_path) - 64usize];
};
impl Default for xk_module_desc {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct xk_live {
    pub struct_size: u32,
    pub reserved: u32,
    pub cards: u64,
    pub arenas: u64,
    pub arena_bytes: u64,
    pub queues: u64,
    pub events: u64,
    pub modules: u64,
    pub graphs: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_live"][::core::mem::size_of::<xk_live>() - 64usize];
    ["Alignment of xk_live"][::core::mem::align_of::<xk_live>() - 8usize];
    ["Offset of field: xk_live::struct_size"][::core::mem::offset_of!(xk_live, struct_size) - 0usize];
    ["Offset of field: xk_live::reserved"][::core::mem::offset_of!(xk_live, reserved) - 4usize];
    ["Offset of field: xk_live::cards"][::core::mem::offset_of!(xk_live, cards) - 8usize];
    ["Offset of field: xk_live::arenas"][::core::mem::offset_of!(xk_live, arenas) - 16usize];
    ["Offset of field: xk_live::arena_bytes"][::core::mem::offset_of!(xk_live, arena_bytes) - 24usize];
    ["Offset of field: xk_live::queues"][::core::mem::offset_of!(xk_live, queues) - 32usize];
    ["Offset of field: xk_live::events"][::core::mem::offset_of!(xk_live, events) - 40usize];
    ["Offset of field: xk_live::modules"][::core::mem::offset_of!(xk_live, modules) - 48usize];
    ["Offset of field: xk_live::graphs"][::core::mem::offset_of!(xk_live, graphs) - 56usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_canary_args {
    pub struct_size: u32,
    pub n: u32,
    pub kernel: *mut xk_kernel,
    pub a: *const f32,
    pub b: *const f32,
    pub out: *mut f32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_canary_args"][::core::mem::size_of::<xk_canary_args>() - 40usize];
    ["Alignment of xk_canary_args"][::core::mem::align_of::<xk_canary_args>() - 8usize];
    ["Offset of field: xk_canary_args::struct_size"][::core::mem::offset_of!(xk_canary_args, struct_size) - 0usize];
    ["Offset of field: xk_canary_args::n"][::core::mem::offset_of!(xk_canary_args, n) - 4usize];
    ["Offset of field: xk_canary_args::kernel"][::core::mem::offset_of!(xk_canary_args, kernel) - 8usize];
    ["Offset of field: xk_canary_args::a"][::core::mem::offset_of!(xk_canary_args, a) - 16usize];
    ["Offset of field: xk_canary_args::b"][::core::mem::offset_of!(xk_canary_args, b) - 24usize];
    ["Offset of field: xk_canary_args::out"][::core::mem::offset_of!(xk_canary_args, out) - 32usize];
};
impl Default for xk_canary_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_rows {
    pub x: *mut f32,
    pub q: *mut i8,
    pub d: *mut f32,
    pub s: *mut i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_rows"][::core::mem::size_of::<xk_rows>() - 32usize];
    ["Alignment of xk_rows"][::core::mem::align_of::<xk_rows>() - 8usize];
    ["Offset of field: xk_rows::x"][::core::mem::offset_of!(xk_rows, x) - 0usize];
    ["Offset of field: xk_rows::q"][::core::mem::offset_of!(xk_rows, q) - 8usize];
    ["Offset of field: xk_rows::d"][::core::mem::offset_of!(xk_rows, d) - 16usize];
    ["Offset of field: xk_rows::s"][::core::mem::offset_of!(xk_rows, s) - 24usize];
};
impl Default for xk_rows {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_matmul_args {
    pub struct_size: u32,
    pub n: u32,
    pub k: u32,
    pub rows: u32,
    pub rows_per_group: u32,
    pub max_entries: u32,
    pub x_div: u32,
    pub slots_at: u32,
    pub experts: *const u64,
    pub kernel: *mut xk_kernel,
    pub weights: *const ::core::ffi::c_void,
    pub codebook: *const ::core::ffi::c_void,
    pub x: xk_rows,
    pub y: *mut f32,
    pub plan: *const i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_matmul_args"][::core::mem::size_of::<xk_matmul_args>() - 112usize];
    ["Alignment of xk_matmul_args"][::core::mem::align_of::<xk_matmul_args>() - 8usize];
    ["Offset of field: xk_matmul_args::struct_size"][::core::mem::offset_of!(xk_matmul_args, struct_size) - 0usize];
    ["Offset of field: xk_matmul_args::n"][::core::mem::offset_of!(xk_matmul_args, n) - 4usize];
    ["Offset of field: xk_matmul_args::k"][::core::mem::offset_of!(xk_matmul_args, k) - 8usize];
    ["Offset of field: xk_matmul_args::rows"][::core::mem::offset_of!(xk_matmul_args, rows) - 12usize];
    ["Offset of field: xk_matmul_args::rows_per_group"]
        [::core::mem::offset_of!(xk_matmul_args, rows_per_group) - 16usize];
    ["Offset of field: xk_matmul_args::max_entries"][::core::mem::offset_of!(xk_matmul_args, max_entries) - 20usize];
    ["Offset of field: xk_matmul_args::x_div"][::core::mem::offset_of!(xk_matmul_args, x_div) - 24usize];
    ["Offset of field: xk_matmul_args::slots_at"][::core::mem::offset_of!(xk_matmul_args, slots_at) - 28usize];
    ["Offset of field: xk_matmul_args::experts"][::core::mem::offset_of!(xk_matmul_args, experts) - 32usize];
    ["Offset of field: xk_matmul_args::kernel"][::core::mem::offset_of!(xk_matmul_args, kernel) - 40usize];
    ["Offset of field: xk_matmul_args::weights"][::core::mem::offset_of!(xk_matmul_args, weights) - 48usize];
    ["Offset of field: xk_matmul_args::codebook"][::core::mem::offset_of!(xk_matmul_args, codebook) - 56usize];
    ["Offset of field: xk_matmul_args::x"][::core::mem::offset_of!(xk_matmul_args, x) - 64usize];
    ["Offset of field: xk_matmul_args::y"][::core::mem::offset_of!(xk_matmul_args, y) - 96usize];
    ["Offset of field: xk_matmul_args::plan"][::core::mem::offset_of!(xk_matmul_args, plan) - 104usize];
};
impl Default for xk_matmul_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_hyper_start_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub streams: u32,
    pub hidden: u32,
    pub kernel: *mut xk_kernel,
    pub x: *const f32,
    pub r: *mut f32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_hyper_start_args"][::core::mem::size_of::<xk_hyper_start_args>() - 40usize];
    ["Alignment of xk_hyper_start_args"][::core::mem::align_of::<xk_hyper_start_args>() - 8usize];
    ["Offset of field: xk_hyper_start_args::struct_size"]
        [::core::mem::offset_of!(xk_hyper_start_args, struct_size) - 0usize];
    ["Offset of field: xk_hyper_start_args::tokens"][::core::mem::offset_of!(xk_hyper_start_args, tokens) - 4usize];
    ["Offset of field: xk_hyper_start_args::streams"][::core::mem::offset_of!(xk_hyper_start_args, streams) - 8usize];
    ["Offset of field: xk_hyper_start_args::hidden"][::core::mem::offset_of!(xk_hyper_start_args, hidden) - 12usize];
    ["Offset of field: xk_hyper_start_args::kernel"][::core::mem::offset_of!(xk_hyper_start_args, kernel) - 16usize];
    ["Offset of field: xk_hyper_start_args::x"][::core::mem::offset_of!(xk_hyper_start_args, x) - 24usize];
    ["Offset of field: xk_hyper_start_args::r"][::core::mem::offset_of!(xk_hyper_start_args, r) - 32usize];
};
impl Default for xk_hyper_start_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_hyper_norm_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub streams: u32,
    pub hidden: u32,
    pub inv_hidden: f32,
    pub eps: f32,
    pub kernel: *mut xk_kernel,
    pub r: *mut f32,
    pub y: *const f32,
    pub weights: *const f32,
    pub norm: *const f32,
    pub out: xk_rows,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_hyper_norm_args"][::core::mem::size_of::<xk_hyper_norm_args>() - 96usize];
    ["Alignment of xk_hyper_norm_args"][::core::mem::align_of::<xk_hyper_norm_args>() - 8usize];
    ["Offset of field: xk_hyper_norm_args::struct_size"]
        [::core::mem::offset_of!(xk_hyper_norm_args, struct_size) - 0usize];
    ["Offset of field: xk_hyper_norm_args::tokens"][::core::mem::offset_of!(xk_hyper_norm_args, tokens) - 4usize];
    ["Offset of field: xk_hyper_norm_args::streams"][::core::mem::offset_of!(xk_hyper_norm_args, streams) - 8usize];
    ["Offset of field: xk_hyper_norm_args::hidden"][::core::mem::offset_of!(xk_hyper_norm_args, hidden) - 12usize];
    ["Offset of field: xk_hyper_norm_args::inv_hidden"]
        [::core::mem::offset_of!(xk_hyper_norm_args, inv_hidden) - 16usize];
    ["Offset of field: xk_hyper_norm_args::eps"][::core::mem::offset_of!(xk_hyper_norm_args, eps) - 20usize];
    ["Offset of field: xk_hyper_norm_args::kernel"][::core::mem::offset_of!(xk_hyper_norm_args, kernel) - 24usize];
    ["Offset of field: xk_hyper_norm_args::r"][::core::mem::offset_of!(xk_hyper_norm_args, r) - 32usize];
    ["Offset of field: xk_hyper_norm_args::y"][::core::mem::offset_of!(xk_hyper_norm_args, y) - 40usize];
    ["Offset of field: xk_hyper_norm_args::weights"][::core::mem::offset_of!(xk_hyper_norm_args, weights) - 48usize];
    ["Offset of field: xk_hyper_norm_args::norm"][::core::mem::offset_of!(xk_hyper_norm_args, norm) - 56usize];
    ["Offset of field: xk_hyper_norm_args::out"][::core::mem::offset_of!(xk_hyper_norm_args, out) - 64usize];
};
impl Default for xk_hyper_norm_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_hyper_mix_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub streams: u32,
    pub hidden: u32,
    pub inv_streams: f32,
    pub reserved: u32,
    pub kernel: *mut xk_kernel,
    pub a: *const f32,
    pub x: *const f32,
    pub inject: *const f32,
    pub weights: *mut f32,
    pub out: xk_rows,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_hyper_mix_args"][::core::mem::size_of::<xk_hyper_mix_args>() - 96usize];
    ["Alignment of xk_hyper_mix_args"][::core::mem::align_of::<xk_hyper_mix_args>() - 8usize];
    ["Offset of field: xk_hyper_mix_args::struct_size"]
        [::core::mem::offset_of!(xk_hyper_mix_args, struct_size) - 0usize];
    ["Offset of field: xk_hyper_mix_args::tokens"][::core::mem::offset_of!(xk_hyper_mix_args, tokens) - 4usize];
    ["Offset of field: xk_hyper_mix_args::streams"][::core::mem::offset_of!(xk_hyper_mix_args, streams) - 8usize];
    ["Offset of field: xk_hyper_mix_args::hidden"][::core::mem::offset_of!(xk_hyper_mix_args, hidden) - 12usize];
    ["Offset of field: xk_hyper_mix_args::inv_streams"]
        [::core::mem::offset_of!(xk_hyper_mix_args, inv_streams) - 16usize];
    ["Offset of field: xk_hyper_mix_args::reserved"][::core::mem::offset_of!(xk_hyper_mix_args, reserved) - 20usize];
    ["Offset of field: xk_hyper_mix_args::kernel"][::core::mem::offset_of!(xk_hyper_mix_args, kernel) - 24usize];
    ["Offset of field: xk_hyper_mix_args::a"][::core::mem::offset_of!(xk_hyper_mix_args, a) - 32usize];
    ["Offset of field: xk_hyper_mix_args::x"][::core::mem::offset_of!(xk_hyper_mix_args, x) - 40usize];
    ["Offset of field: xk_hyper_mix_args::inject"][::core::mem::offset_of!(xk_hyper_mix_args, inject) - 48usize];
    ["Offset of field: xk_hyper_mix_args::weights"][::core::mem::offset_of!(xk_hyper_mix_args, weights) - 56usize];
    ["Offset of field: xk_hyper_mix_args::out"][::core::mem::offset_of!(xk_hyper_mix_args, out) - 64usize];
};
impl Default for xk_hyper_mix_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_act_args {
    pub struct_size: u32,
    pub kind: u32,
    pub scale: f32,
    pub reserved: u32,
    pub elements: u64,
    pub kernel: *mut xk_kernel,
    pub a: *const f32,
    pub b: *const f32,
    pub out: xk_rows,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_act_args"][::core::mem::size_of::<xk_act_args>() - 80usize];
    ["Alignment of xk_act_args"][::core::mem::align_of::<xk_act_args>() - 8usize];
    ["Offset of field: xk_act_args::struct_size"][::core::mem::offset_of!(xk_act_args, struct_size) - 0usize];
    ["Offset of field: xk_act_args::kind"][::core::mem::offset_of!(xk_act_args, kind) - 4usize];
    ["Offset of field: xk_act_args::scale"][::core::mem::offset_of!(xk_act_args, scale) - 8usize];
    ["Offset of field: xk_act_args::reserved"][::core::mem::offset_of!(xk_act_args, reserved) - 12usize];
    ["Offset of field: xk_act_args::elements"][::core::mem::offset_of!(xk_act_args, elements) - 16usize];
    ["Offset of field: xk_act_args::kernel"][::core::mem::offset_of!(xk_act_args, kernel) - 24usize];
    ["Offset of field: xk_act_args::a"][::core::mem::offset_of!(xk_act_args, a) - 32usize];
    ["Offset of field: xk_act_args::b"][::core::mem::offset_of!(xk_act_args, b) - 40usize];
    ["Offset of field: xk_act_args::out"][::core::mem::offset_of!(xk_act_args, out) - 48usize];
};
impl Default for xk_act_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_gdn_conv_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub key_heads: u32,
    pub value_heads: u32,
    pub taps: u32,
    pub eps: f32,
    pub gate_group: u32,
    pub gate_stride: u32,
    pub gate_row: u32,
    pub reserved: u32,
    pub kernel: *mut xk_kernel,
    pub u: *const f32,
    pub window: *const f32,
    pub conv: *const f32,
    pub beta: *const f32,
    pub alpha: *const f32,
    pub ssm_a: *const f32,
    pub dt: *const f32,
    pub y: *mut f32,
    pub gates: *mut f32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_gdn_conv_args"][::core::mem::size_of::<xk_gdn_conv_args>() - 120usize];
    ["Alignment of xk_gdn_conv_args"][::core::mem::align_of::<xk_gdn_conv_args>() - 8usize];
    ["Offset of field: xk_gdn_conv_args::struct_size"][::core::mem::offset_of!(xk_gdn_conv_args, struct_size) - 0usize];
    ["Offset of field: xk_gdn_conv_args::tokens"][::core::mem::offset_of!(xk_gdn_conv_args, tokens) - 4usize];
    ["Offset of field: xk_gdn_conv_args::key_heads"][::core::mem::offset_of!(xk_gdn_conv_args, key_heads) - 8usize];
    ["Offset of field: xk_gdn_conv_args::value_heads"]
        [::core::mem::offset_of!(xk_gdn_conv_args, value_heads) - 12usize];
    ["Offset of field: xk_gdn_conv_args::taps"][::core::mem::offset_of!(xk_gdn_conv_args, taps) - 16usize];
    ["Offset of field: xk_gdn_conv_args::eps"][::core::mem::offset_of!(xk_gdn_conv_args, eps) - 20usize];
    ["Offset of field: xk_gdn_conv_args::gate_group"][::core::mem::offset_of!(xk_gdn_conv_args, gate_group) - 24usize];
    ["Offset of field: xk_gdn_conv_args::gate_stride"]
        [::core::mem::offset_of!(xk_gdn_conv_args, gate_stride) - 28usize];
    ["Offset of field: xk_gdn_conv_args::gate_row"][::core::mem::offset_of!(xk_gdn_conv_args, gate_row) - 32usize];
    ["Offset of field: xk_gdn_conv_args::reserved"][::core::mem::offset_of!(xk_gdn_conv_args, reserved) - 36usize];
    ["Offset of field: xk_gdn_conv_args::kernel"][::core::mem::offset_of!(xk_gdn_conv_args, kernel) - 40usize];
    ["Offset of field: xk_gdn_conv_args::u"][::core::mem::offset_of!(xk_gdn_conv_args, u) - 48usize];
    ["Offset of field: xk_gdn_conv_args::window"][::core::mem::offset_of!(xk_gdn_conv_args, window) - 56usize];
    ["Offset of field: xk_gdn_conv_args::conv"][::core::mem::offset_of!(xk_gdn_conv_args, conv) - 64usize];
    ["Offset of field: xk_gdn_conv_args::beta"][::core::mem::offset_of!(xk_gdn_conv_args, beta) - 72usize];
    ["Offset of field: xk_gdn_conv_args::alpha"][::core::mem::offset_of!(xk_gdn_conv_args, alpha) - 80usize];
    ["Offset of field: xk_gdn_conv_args::ssm_a"][::core::mem::offset_of!(xk_gdn_conv_args, ssm_a) - 88usize];
    ["Offset of field: xk_gdn_conv_args::dt"][::core::mem::offset_of!(xk_gdn_conv_args, dt) - 96usize];
    ["Offset of field: xk_gdn_conv_args::y"][::core::mem::offset_of!(xk_gdn_conv_args, y) - 104usize];
    ["Offset of field: xk_gdn_conv_args::gates"][::core::mem::offset_of!(xk_gdn_conv_args, gates) - 112usize];
};
impl Default for xk_gdn_conv_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_gdn_step_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub key_heads: u32,
    pub value_heads: u32,
    pub taps: u32,
    pub scale: f32,
    pub grouped: u32,
    pub reserved: u32,
    pub kernel: *mut xk_kernel,
    pub y: *const f32,
    pub gates: *const f32,
    pub u: *const f32,
    pub window: *mut f32,
    pub state: *mut f32,
    pub o: *mut f32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_gdn_step_args"][::core::mem::size_of::<xk_gdn_step_args>() - 88usize];
    ["Alignment of xk_gdn_step_args"][::core::mem::align_of::<xk_gdn_step_args>() - 8usize];
    ["Offset of field: xk_gdn_step_args::struct_size"][::core::mem::offset_of!(xk_gdn_step_args, struct_size) - 0usize];
    ["Offset of field: xk_gdn_step_args::tokens"][::core::mem::offset_of!(xk_gdn_step_args, tokens) - 4usize];
    ["Offset of field: xk_gdn_step_args::key_heads"][::core::mem::offset_of!(xk_gdn_step_args, key_heads) - 8usize];
    ["Offset of field: xk_gdn_step_args::value_heads"]
        [::core::mem::offset_of!(xk_gdn_step_args, value_heads) - 12usize];
    ["Offset of field: xk_gdn_step_args::taps"][::core::mem::offset_of!(xk_gdn_step_args, taps) - 16usize];
    ["Offset of field: xk_gdn_step_args::scale"][::core::mem::offset_of!(xk_gdn_step_args, scale) - 20usize];
    ["Offset of field: xk_gdn_step_args::grouped"][::core::mem::offset_of!(xk_gdn_step_args, grouped) - 24usize];
    ["Offset of field: xk_gdn_step_args::reserved"][::core::mem::offset_of!(xk_gdn_step_args, reserved) - 28usize];
    ["Offset of field: xk_gdn_step_args::kernel"][::core::mem::offset_of!(xk_gdn_step_args, kernel) - 32usize];
    ["Offset of field: xk_gdn_step_args::y"][::core::mem::offset_of!(xk_gdn_step_args, y) - 40usize];
    ["Offset of field: xk_gdn_step_args::gates"][::core::mem::offset_of!(xk_gdn_step_args, gates) - 48usize];
    ["Offset of field: xk_gdn_step_args::u"][::core::mem::offset_of!(xk_gdn_step_args, u) - 56usize];
    ["Offset of field: xk_gdn_step_args::window"][::core::mem::offset_of!(xk_gdn_step_args, window) - 64usize];
    ["Offset of field: xk_gdn_step_args::state"][::core::mem::offset_of!(xk_gdn_step_args, state) - 72usize];
    ["Offset of field: xk_gdn_step_args::o"][::core::mem::offset_of!(xk_gdn_step_args, o) - 80usize];
};
impl Default for xk_gdn_step_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_gdn_norm_args {
    pub struct_size: u32,
    pub rows: u32,
    pub inv_head: f32,
    pub eps: f32,
    pub silu: u32,
    pub reserved: u32,
    pub kernel: *mut xk_kernel,
    pub o: *const f32,
    pub z: *const f32,
    pub norm: *const f32,
    pub out: xk_rows,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_gdn_norm_args"][::core::mem::size_of::<xk_gdn_norm_args>() - 88usize];
    ["Alignment of xk_gdn_norm_args"][::core::mem::align_of::<xk_gdn_norm_args>() - 8usize];
    ["Offset of field: xk_gdn_norm_args::struct_size"][::core::mem::offset_of!(xk_gdn_norm_args, struct_size) - 0usize];
    ["Offset of field: xk_gdn_norm_args::rows"][::core::mem::offset_of!(xk_gdn_norm_args, rows) - 4usize];
    ["Offset of field: xk_gdn_norm_args::inv_head"][::core::mem::offset_of!(xk_gdn_norm_args, inv_head) - 8usize];
    ["Offset of field: xk_gdn_norm_args::eps"][::core::mem::offset_of!(xk_gdn_norm_args, eps) - 12usize];
    ["Offset of field: xk_gdn_norm_args::silu"][::core::mem::offset_of!(xk_gdn_norm_args, silu) - 16usize];
    ["Offset of field: xk_gdn_norm_args::reserved"][::core::mem::offset_of!(xk_gdn_norm_args, reserved) - 20usize];
    ["Offset of field: xk_gdn_norm_args::kernel"][::core::mem::offset_of!(xk_gdn_norm_args, kernel) - 24usize];
    ["Offset of field: xk_gdn_norm_args::o"][::core::mem::offset_of!(xk_gdn_norm_args, o) - 32usize];
    ["Offset of field: xk_gdn_norm_args::z"][::core::mem::offset_of!(xk_gdn_norm_args, z) - 40usize];
    ["Offset of field: xk_gdn_norm_args::norm"][::core::mem::offset_of!(xk_gdn_norm_args, norm) - 48usize];
    ["Offset of field: xk_gdn_norm_args::out"][::core::mem::offset_of!(xk_gdn_norm_args, out) - 56usize];
};
impl Default for xk_gdn_norm_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_attention_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub index_heads: u32,
    pub index_dim: u32,
    pub ratio: u32,
    pub budget: u32,
    pub rope_dims: u32,
    pub max_blocks: u32,
    pub eps: f32,
    pub inv_head_dim: f32,
    pub inv_index_dim: f32,
    pub inv_ratio: f32,
    pub scale: f32,
    pub score_groups: u32,
    pub pool: *mut xk_kernel,
    pub prepare: *mut xk_kernel,
    pub score_kernel: *mut xk_kernel,
    pub select: *mut xk_kernel,
    pub attend: *mut xk_kernel,
    pub start: *const i32,
    pub table: *const f32,
    pub qg: *const f32,
    pub k: *const f32,
    pub v: *const f32,
    pub iq_raw: *const f32,
    pub ik_raw: *const f32,
    pub q_norm: *const f32,
    pub k_norm: *const f32,
    pub iq_norm: *const f32,
    pub ik_norm: *const f32,
    pub k_cache: *mut ::core::ffi::c_void,
    pub v_cache: *mut ::core::ffi::c_void,
    pub pooled: *mut ::core::ffi::c_void,
    pub tail: *mut f32,
    pub q: *mut f32,
    pub iq: *mut f32,
    pub mean: *mut f32,
    pub score: *mut f32,
    pub selected: *mut i32,
    pub out: xk_rows,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_attention_args"][::core::mem::size_of::<xk_attention_args>() - 296usize];
    ["Alignment of xk_attention_args"][::core::mem::align_of::<xk_attention_args>() - 8usize];
    ["Offset of field: xk_attention_args::struct_size"]
        [::core::mem::offset_of!(xk_attention_args, struct_size) - 0usize];
    ["Offset of field: xk_attention_args::tokens"][::core::mem::offset_of!(xk_attention_args, tokens) - 4usize];
    ["Offset of field: xk_attention_args::heads"][::core::mem::offset_of!(xk_attention_args, heads) - 8usize];
    ["Offset of field: xk_attention_args::kv_heads"][::core::mem::offset_of!(xk_attention_args, kv_heads) - 12usize];
    ["Offset of field: xk_attention_args::index_heads"]
        [::core::mem::offset_of!(xk_attention_args, index_heads) - 16usize];
    ["Offset of field: xk_attention_args::index_dim"][::core::mem::offset_of!(xk_attention_args, index_dim) - 20usize];
    ["Offset of field: xk_attention_args::ratio"][::core::mem::offset_of!(xk_attention_args, ratio) - 24usize];
    ["Offset of field: xk_attention_args::budget"][::core::mem::offset_of!(xk_attention_args, budget) - 28usize];
    ["Offset of field: xk_attention_args::rope_dims"][::core::mem::offset_of!(xk_attention_args, rope_dims) - 32usize];
    ["Offset of field: xk_attention_args::max_blocks"]
        [::core::mem::offset_of!(xk_attention_args, max_blocks) - 36usize];
    ["Offset of field: xk_attention_args::eps"][::core::mem::offset_of!(xk_attention_args, eps) - 40usize];
    ["Offset of field: xk_attention_args::inv_head_dim"]
        [::core::mem::offset_of!(xk_attention_args, inv_head_dim) - 44usize];
    ["Offset of field: xk_attention_args::inv_index_dim"]
        [::core::mem::offset_of!(xk_attention_args, inv_index_dim) - 48usize];
    ["Offset of field: xk_attention_args::inv_ratio"][::core::mem::offset_of!(xk_attention_args, inv_ratio) - 52usize];
    ["Offset of field: xk_attention_args::scale"][::core::mem::offset_of!(xk_attention_args, scale) - 56usize];
    ["Offset of field: xk_attention_args::score_groups"]
        [::core::mem::offset_of!(xk_attention_args, score_groups) - 60usize];
    ["Offset of field: xk_attention_args::pool"][::core::mem::offset_of!(xk_attention_args, pool) - 64usize];
    ["Offset of field: xk_attention_args::prepare"][::core::mem::offset_of!(xk_attention_args, prepare) - 72usize];
    ["Offset of field: xk_attention_args::score_kernel"]
        [::core::mem::offset_of!(xk_attention_args, score_kernel) - 80usize];
    ["Offset of field: xk_attention_args::select"][::core::mem::offset_of!(xk_attention_args, select) - 88usize];
    ["Offset of field: xk_attention_args::attend"][::core::mem::offset_of!(xk_attention_args, attend) - 96usize];
    ["Offset of field: xk_attention_args::start"][::core::mem::offset_of!(xk_attention_args, start) - 104usize];
    ["Offset of field: xk_attention_args::table"][::core::mem::offset_of!(xk_attention_args, table) - 112usize];
    ["Offset of field: xk_attention_args::qg"][::core::mem::offset_of!(xk_attention_args, qg) - 120usize];
    ["Offset of field: xk_attention_args::k"][::core::mem::offset_of!(xk_attention_args, k) - 128usize];
    ["Offset of field: xk_attention_args::v"][::core::mem::offset_of!(xk_attention_args, v) - 136usize];
    ["Offset of field: xk_attention_args::iq_raw"][::core::mem::offset_of!(xk_attention_args, iq_raw) - 144usize];
    ["Offset of field: xk_attention_args::ik_raw"][::core::mem::offset_of!(xk_attention_args, ik_raw) - 152usize];
    ["Offset of field: xk_attention_args::q_norm"][::core::mem::offset_of!(xk_attention_args, q_norm) - 160usize];
    ["Offset of field: xk_attention_args::k_norm"][::core::mem::offset_of!(xk_attention_args, k_norm) - 168usize];
    ["Offset of field: xk_attention_args::iq_norm"][::core::mem::offset_of!(xk_attention_args, iq_norm) - 176usize];
    ["Offset of field: xk_attention_args::ik_norm"][::core::mem::offset_of!(xk_attention_args, ik_norm) - 184usize];
    ["Offset of field: xk_attention_args::k_cache"][::core::mem::offset_of!(xk_attention_args, k_cache) - 192usize];
    ["Offset of field: xk_attention_args::v_cache"][::core::mem::offset_of!(xk_attention_args, v_cache) - 200usize];
    ["Offset of field: xk_attention_args::pooled"][::core::mem::offset_of!(xk_attention_args, pooled) - 208usize];
    ["Offset of field: xk_attention_args::tail"][::core::mem::offset_of!(xk_attention_args, tail) - 216usize];
    ["Offset of field: xk_attention_args::q"][::core::mem::offset_of!(xk_attention_args, q) - 224usize];
    ["Offset of field: xk_attention_args::iq"][::core::mem::offset_of!(xk_attention_args, iq) - 232usize];
    ["Offset of field: xk_attention_args::mean"][::core::mem::offset_of!(xk_attention_args, mean) - 240usize];
    ["Offset of field: xk_attention_args::score"][::core::mem::offset_of!(xk_attention_args, score) - 248usize];
    ["Offset of field: xk_attention_args::selected"][::core::mem::offset_of!(xk_attention_args, selected) - 256usize];
    ["Offset of field: xk_attention_args::out"][::core::mem::offset_of!(xk_attention_args, out) - 264usize];
};
impl Default for xk_attention_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_moe_route_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub experts: u32,
    pub used: u32,
    pub rows_per_group: u32,
    pub slots_at: u32,
    pub route: *mut xk_kernel,
    pub plan_kernel: *mut xk_kernel,
    pub logits: *const f32,
    pub chosen: *mut i32,
    pub weights: *mut f32,
    pub plan: *mut i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_moe_route_args"][::core::mem::size_of::<xk_moe_route_args>() - 72usize];
    ["Alignment of xk_moe_route_args"][::core::mem::align_of::<xk_moe_route_args>() - 8usize];
    ["Offset of field: xk_moe_route_args::struct_size"]
        [::core::mem::offset_of!(xk_moe_route_args, struct_size) - 0usize];
    ["Offset of field: xk_moe_route_args::tokens"][::core::mem::offset_of!(xk_moe_route_args, tokens) - 4usize];
    ["Offset of field: xk_moe_route_args::experts"][::core::mem::offset_of!(xk_moe_route_args, experts) - 8usize];
    ["Offset of field: xk_moe_route_args::used"][::core::mem::offset_of!(xk_moe_route_args, used) - 12usize];
    ["Offset of field: xk_moe_route_args::rows_per_group"]
        [::core::mem::offset_of!(xk_moe_route_args, rows_per_group) - 16usize];
    ["Offset of field: xk_moe_route_args::slots_at"][::core::mem::offset_of!(xk_moe_route_args, slots_at) - 20usize];
    ["Offset of field: xk_moe_route_args::route"][::core::mem::offset_of!(xk_moe_route_args, route) - 24usize];
    ["Offset of field: xk_moe_route_args::plan_kernel"]
        [::core::mem::offset_of!(xk_moe_route_args, plan_kernel) - 32usize];
    ["Offset of field: xk_moe_route_args::logits"][::core::mem::offset_of!(xk_moe_route_args, logits) - 40usize];
    ["Offset of field: xk_moe_route_args::chosen"][::core::mem::offset_of!(xk_moe_route_args, chosen) - 48usize];
    ["Offset of field: xk_moe_route_args::weights"][::core::mem::offset_of!(xk_moe_route_args, weights) - 56usize];
    ["Offset of field: xk_moe_route_args::plan"][::core::mem::offset_of!(xk_moe_route_args, plan) - 64usize];
};
impl Default for xk_moe_route_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_moe_combine_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub used: u32,
    pub hidden: u32,
    pub kernel: *mut xk_kernel,
    pub down: *const f32,
    pub weights: *const f32,
    pub shared: *const f32,
    pub shared_gate: *const f32,
    pub y: *mut f32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_moe_combine_args"][::core::mem::size_of::<xk_moe_combine_args>() - 64usize];
    ["Alignment of xk_moe_combine_args"][::core::mem::align_of::<xk_moe_combine_args>() - 8usize];
    ["Offset of field: xk_moe_combine_args::struct_size"]
        [::core::mem::offset_of!(xk_moe_combine_args, struct_size) - 0usize];
    ["Offset of field: xk_moe_combine_args::tokens"][::core::mem::offset_of!(xk_moe_combine_args, tokens) - 4usize];
    ["Offset of field: xk_moe_combine_args::used"][::core::mem::offset_of!(xk_moe_combine_args, used) - 8usize];
    ["Offset of field: xk_moe_combine_args::hidden"][::core::mem::offset_of!(xk_moe_combine_args, hidden) - 12usize];
    ["Offset of field: xk_moe_combine_args::kernel"][::core::mem::offset_of!(xk_moe_combine_args, kernel) - 16usize];
    ["Offset of field: xk_moe_combine_args::down"][::core::mem::offset_of!(xk_moe_combine_args, down) - 24usize];
    ["Offset of field: xk_moe_combine_args::weights"][::core::mem::offset_of!(xk_moe_combine_args, weights) - 32usize];
    ["Offset of field: xk_moe_combine_args::shared"][::core::mem::offset_of!(xk_moe_combine_args, shared) - 40usize];
    ["Offset of field: xk_moe_combine_args::shared_gate"]
        [::core::mem::offset_of!(xk_moe_combine_args, shared_gate) - 48usize];
    ["Offset of field: xk_moe_combine_args::y"][::core::mem::offset_of!(xk_moe_combine_args, y) - 56usize];
};
impl Default for xk_moe_combine_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct xk_ple_args {
    pub struct_size: u32,
    pub tokens: u32,
    pub streams: u32,
    pub hidden: u32,
    pub taps: u32,
    pub dilation: u32,
    pub inv_hidden: f32,
    pub inv_sqrt_hidden: f32,
    pub eps: f32,
    pub reserved: u32,
    pub gate: *mut xk_kernel,
    pub conv_kernel: *mut xk_kernel,
    pub r: *mut f32,
    pub y: *const f32,
    pub weights: *const f32,
    pub key: *const f32,
    pub value: *const f32,
    pub norm_key: *const f32,
    pub norm_query: *const f32,
    pub norm_conv: *const f32,
    pub conv: *const f32,
    pub n: *mut f32,
    pub history: *mut f32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_ple_args"][::core::mem::size_of::<xk_ple_args>() - 144usize];
    ["Alignment of xk_ple_args"][::core::mem::align_of::<xk_ple_args>() - 8usize];
    ["Offset of field: xk_ple_args::struct_size"][::core::mem::offset_of!(xk_ple_args, struct_size) - 0usize];
    ["Offset of field: xk_ple_args::tokens"][::core::mem::offset_of!(xk_ple_args, tokens) - 4usize];
    ["Offset of field: xk_ple_args::streams"][::core::mem::offset_of!(xk_ple_args, streams) - 8usize];
    ["Offset of field: xk_ple_args::hidden"][::core::mem::offset_of!(xk_ple_args, hidden) - 12usize];
    ["Offset of field: xk_ple_args::taps"][::core::mem::offset_of!(xk_ple_args, taps) - 16usize];
    ["Offset of field: xk_ple_args::dilation"][::core::mem::offset_of!(xk_ple_args, dilation) - 20usize];
    ["Offset of field: xk_ple_args::inv_hidden"][::core::mem::offset_of!(xk_ple_args, inv_hidden) - 24usize];
    ["Offset of field: xk_ple_args::inv_sqrt_hidden"][::core::mem::offset_of!(xk_ple_args, inv_sqrt_hidden) - 28usize];
    ["Offset of field: xk_ple_args::eps"][::core::mem::offset_of!(xk_ple_args, eps) - 32usize];
    ["Offset of field: xk_ple_args::reserved"][::core::mem::offset_of!(xk_ple_args, reserved) - 36usize];
    ["Offset of field: xk_ple_args::gate"][::core::mem::offset_of!(xk_ple_args, gate) - 40usize];
    ["Offset of field: xk_ple_args::conv_kernel"][::core::mem::offset_of!(xk_ple_args, conv_kernel) - 48usize];
    ["Offset of field: xk_ple_args::r"][::core::mem::offset_of!(xk_ple_args, r) - 56usize];
    ["Offset of field: xk_ple_args::y"][::core::mem::offset_of!(xk_ple_args, y) - 64usize];
    ["Offset of field: xk_ple_args::weights"][::core::mem::offset_of!(xk_ple_args, weights) - 72usize];
    ["Offset of field: xk_ple_args::key"][::core::mem::offset_of!(xk_ple_args, key) - 80usize];
    ["Offset of field: xk_ple_args::value"][::core::mem::offset_of!(xk_ple_args, value) - 88usize];
    ["Offset of field: xk_ple_args::norm_key"][::core::mem::offset_of!(xk_ple_args, norm_key) - 96usize];
    ["Offset of field: xk_ple_args::norm_query"][::core::mem::offset_of!(xk_ple_args, norm_query) - 104usize];
    ["Offset of field: xk_ple_args::norm_conv"][::core::mem::offset_of!(xk_ple_args, norm_conv) - 112usize];
    ["Offset of field: xk_ple_args::conv"][::core::mem::offset_of!(xk_ple_args, conv) - 120usize];
    ["Offset of field: xk_ple_args::n"][::core::mem::offset_of!(xk_ple_args, n) - 128usize];
    ["Offset of field: xk_ple_args::history"][::core::mem::offset_of!(xk_ple_args, history) - 136usize];
};
impl Default for xk_ple_args {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn xk_abi_version(major: *mut u32, minor: *mut u32) -> xk_status;
    pub fn xk_last_error(buf: *mut ::core::ffi::c_char, cap: usize) -> usize;
    pub fn xk_device_count(count: *mut u32) -> xk_status;
    pub fn xk_device_info_get(index: u32, info: *mut xk_device_info) -> xk_status;
    pub fn xk_card_create(desc: *const xk_card_desc, out: *mut *mut xk_card) -> xk_status;
    pub fn xk_card_peer(to: *mut xk_card, from: *mut xk_card, possible: *mut u32) -> xk_status;
    pub fn xk_card_destroy(card: *mut xk_card);
    pub fn xk_arena_create(card: *mut xk_card, bytes: u64, kind: u32, out: *mut *mut xk_arena) -> xk_status;
    pub fn xk_arena_base(arena: *const xk_arena, out: *mut *mut ::core::ffi::c_void) -> xk_status;
    pub fn xk_arena_destroy(arena: *mut xk_arena);
    pub fn xk_queue_create(card: *mut xk_card, flags: u32, out: *mut *mut xk_queue) -> xk_status;
    pub fn xk_queue_destroy(queue: *mut xk_queue);
    pub fn xk_queue_wait(queue: *mut xk_queue) -> xk_status;
    pub fn xk_queue_idle(queue: *mut xk_queue, idle: *mut u32) -> xk_status;
    pub fn xk_queue_copy(
        queue: *mut xk_queue,
        dst: *mut ::core::ffi::c_void,
        src: *const ::core::ffi::c_void,
        bytes: u64,
    ) -> xk_status;
    pub fn xk_queue_copy_peer(
        queue: *mut xk_queue,
        dst: *mut ::core::ffi::c_void,
        src: *const ::core::ffi::c_void,
        bytes: u64,
    ) -> xk_status;
    pub fn xk_queue_fill(queue: *mut xk_queue, dst: *mut ::core::ffi::c_void, value: u8, bytes: u64) -> xk_status;
    pub fn xk_event_record(queue: *mut xk_queue, out: *mut *mut xk_event) -> xk_status;
    pub fn xk_event_wait(event: *mut xk_event) -> xk_status;
    pub fn xk_event_done(event: *mut xk_event, done: *mut u32) -> xk_status;
    pub fn xk_queue_wait_event(queue: *mut xk_queue, event: *const xk_event) -> xk_status;
    pub fn xk_event_elapsed_ns(first: *const xk_event, second: *const xk_event, nanoseconds: *mut u64) -> xk_status;
    pub fn xk_event_destroy(event: *mut xk_event);
    pub fn xk_module_create(card: *mut xk_card, desc: *const xk_module_desc, out: *mut *mut xk_module) -> xk_status;
    pub fn xk_module_from_cache(module: *const xk_module, from_cache: *mut u32) -> xk_status;
    pub fn xk_module_kernel(
        module: *const xk_module,
        name: *const ::core::ffi::c_char,
        out: *mut *mut xk_kernel,
    ) -> xk_status;
    pub fn xk_module_destroy(module: *mut xk_module);
    pub fn xk_graph_begin(queue: *mut xk_queue) -> xk_status;
    pub fn xk_graph_end(queue: *mut xk_queue, out: *mut *mut xk_graph) -> xk_status;
    pub fn xk_graph_launch(queue: *mut xk_queue, graph: *mut xk_graph) -> xk_status;
    pub fn xk_graph_destroy(graph: *mut xk_graph);
    pub fn xk_fault_set(kind: u32, after: u64) -> xk_status;
    pub fn xk_fault_count(kind: u32, n: *mut u64) -> xk_status;
    pub fn xk_live_objects(live: *mut xk_live) -> xk_status;
    pub fn xk_op_canary(queue: *mut xk_queue, args: *const xk_canary_args) -> xk_status;
    pub fn xk_op_matmul(queue: *mut xk_queue, args: *const xk_matmul_args) -> xk_status;
    pub fn xk_op_hyper_start(queue: *mut xk_queue, args: *const xk_hyper_start_args) -> xk_status;
    pub fn xk_op_hyper_norm(queue: *mut xk_queue, args: *const xk_hyper_norm_args) -> xk_status;
    pub fn xk_op_hyper_mix(queue: *mut xk_queue, args: *const xk_hyper_mix_args) -> xk_status;
    pub fn xk_op_act(queue: *mut xk_queue, args: *const xk_act_args) -> xk_status;
    pub fn xk_op_gdn_conv(queue: *mut xk_queue, args: *const xk_gdn_conv_args) -> xk_status;
    pub fn xk_op_gdn_step(queue: *mut xk_queue, args: *const xk_gdn_step_args) -> xk_status;
    pub fn xk_op_gdn_norm(queue: *mut xk_queue, args: *const xk_gdn_norm_args) -> xk_status;
    pub fn xk_op_attention(queue: *mut xk_queue, args: *const xk_attention_args) -> xk_status;
    pub fn xk_op_moe_route(queue: *mut xk_queue, args: *const xk_moe_route_args) -> xk_status;
    pub fn xk_op_moe_combine(queue: *mut xk_queue, args: *const xk_moe_combine_args) -> xk_status;
    pub fn xk_op_ple(queue: *mut xk_queue, args: *const xk_ple_args) -> xk_status;
}
