// Made by tests/bindings.rs from include/xk_ops.h; see there. Do not edit.

pub const XK_ABI_MAJOR: u32 = 1;
pub const XK_ABI_MINOR: u32 = 0;
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
pub const XK_CANARY_OUTPUTS: u32 = 6;
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
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of xk_device_info"][::core::mem::size_of::<xk_device_info>() - 336usize];
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
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
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
unsafe extern "C" {
    pub fn xk_abi_version(major: *mut u32, minor: *mut u32) -> xk_status;
    pub fn xk_last_error(buf: *mut ::core::ffi::c_char, cap: usize) -> usize;
    pub fn xk_device_count(count: *mut u32) -> xk_status;
    pub fn xk_device_info_get(index: u32, info: *mut xk_device_info) -> xk_status;
    pub fn xk_card_create(desc: *const xk_card_desc, out: *mut *mut xk_card) -> xk_status;
    pub fn xk_card_destroy(card: *mut xk_card);
    pub fn xk_arena_create(card: *mut xk_card, bytes: u64, kind: u32, out: *mut *mut xk_arena) -> xk_status;
    pub fn xk_arena_base(arena: *const xk_arena, out: *mut *mut ::core::ffi::c_void) -> xk_status;
    pub fn xk_arena_destroy(arena: *mut xk_arena);
    pub fn xk_queue_create(card: *mut xk_card, flags: u32, out: *mut *mut xk_queue) -> xk_status;
    pub fn xk_queue_destroy(queue: *mut xk_queue);
    pub fn xk_queue_wait(queue: *mut xk_queue) -> xk_status;
    pub fn xk_queue_copy(
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
    pub fn xk_op_canary(queue: *mut xk_queue, args: *const xk_canary_args) -> xk_status;
}
