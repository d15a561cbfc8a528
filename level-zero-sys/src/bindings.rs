// Made by tests/bindings.rs from level-zero-sys/include/zes_api.h; see there. Do not edit.

pub type ze_bool_t = u8;
#[repr(C)]
#[derive(Debug)]
pub struct _ze_driver_handle_t {
    _unused: [u8; 0],
}
pub type ze_driver_handle_t = *mut _ze_driver_handle_t;
#[repr(C)]
#[derive(Debug)]
pub struct _ze_device_handle_t {
    _unused: [u8; 0],
}
pub type ze_device_handle_t = *mut _ze_device_handle_t;
pub const ZE_RESULT_SUCCESS: _ze_result_t = 0;
pub const ZE_RESULT_NOT_READY: _ze_result_t = 1;
pub const ZE_RESULT_ERROR_DEVICE_LOST: _ze_result_t = 1879048193;
pub const ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY: _ze_result_t = 1879048194;
pub const ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY: _ze_result_t = 1879048195;
pub const ZE_RESULT_ERROR_MODULE_BUILD_FAILURE: _ze_result_t = 1879048196;
pub const ZE_RESULT_ERROR_MODULE_LINK_FAILURE: _ze_result_t = 1879048197;
pub const ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET: _ze_result_t = 1879048198;
pub const ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE: _ze_result_t = 1879048199;
pub const ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX: _ze_result_t = 2146435073;
pub const ZE_RESULT_EXP_ERROR_VERTEX_IS_NOT_DEVICE: _ze_result_t = 2146435074;
pub const ZE_RESULT_EXP_ERROR_REMOTE_DEVICE: _ze_result_t = 2146435075;
pub const ZE_RESULT_EXP_ERROR_OPERANDS_INCOMPATIBLE: _ze_result_t = 2146435076;
pub const ZE_RESULT_EXP_RTAS_BUILD_RETRY: _ze_result_t = 2146435077;
pub const ZE_RESULT_EXP_RTAS_BUILD_DEFERRED: _ze_result_t = 2146435078;
pub const ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS: _ze_result_t = 1879113728;
pub const ZE_RESULT_ERROR_NOT_AVAILABLE: _ze_result_t = 1879113729;
pub const ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE: _ze_result_t = 1879179264;
pub const ZE_RESULT_WARNING_DROPPED_DATA: _ze_result_t = 1879179265;
pub const ZE_RESULT_ERROR_UNINITIALIZED: _ze_result_t = 2013265921;
pub const ZE_RESULT_ERROR_UNSUPPORTED_VERSION: _ze_result_t = 2013265922;
pub const ZE_RESULT_ERROR_UNSUPPORTED_FEATURE: _ze_result_t = 2013265923;
pub const ZE_RESULT_ERROR_INVALID_ARGUMENT: _ze_result_t = 2013265924;
pub const ZE_RESULT_ERROR_INVALID_NULL_HANDLE: _ze_result_t = 2013265925;
pub const ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE: _ze_result_t = 2013265926;
pub const ZE_RESULT_ERROR_INVALID_NULL_POINTER: _ze_result_t = 2013265927;
pub const ZE_RESULT_ERROR_INVALID_SIZE: _ze_result_t = 2013265928;
pub const ZE_RESULT_ERROR_UNSUPPORTED_SIZE: _ze_result_t = 2013265929;
pub const ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT: _ze_result_t = 2013265930;
pub const ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT: _ze_result_t = 2013265931;
pub const ZE_RESULT_ERROR_INVALID_ENUMERATION: _ze_result_t = 2013265932;
pub const ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION: _ze_result_t = 2013265933;
pub const ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT: _ze_result_t = 2013265934;
pub const ZE_RESULT_ERROR_INVALID_NATIVE_BINARY: _ze_result_t = 2013265935;
pub const ZE_RESULT_ERROR_INVALID_GLOBAL_NAME: _ze_result_t = 2013265936;
pub const ZE_RESULT_ERROR_INVALID_KERNEL_NAME: _ze_result_t = 2013265937;
pub const ZE_RESULT_ERROR_INVALID_FUNCTION_NAME: _ze_result_t = 2013265938;
pub const ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION: _ze_result_t = 2013265939;
pub const ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION: _ze_result_t = 2013265940;
pub const ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX: _ze_result_t = 2013265941;
pub const ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE: _ze_result_t = 2013265942;
pub const ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE: _ze_result_t = 2013265943;
pub const ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED: _ze_result_t = 2013265944;
pub const ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE: _ze_result_t = 2013265945;
pub const ZE_RESULT_ERROR_OVERLAPPING_REGIONS: _ze_result_t = 2013265946;
pub const ZE_RESULT_WARNING_ACTION_REQUIRED: _ze_result_t = 2013265947;
pub const ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE: _ze_result_t = 2013265948;
pub const ZE_RESULT_ERROR_UNKNOWN: _ze_result_t = 2147483646;
pub const ZE_RESULT_FORCE_UINT32: _ze_result_t = 2147483647;
pub type _ze_result_t = ::core::ffi::c_uint;
pub use self::_ze_result_t as ze_result_t;
pub const ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES: _ze_structure_type_t = 1;
pub const ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES: _ze_structure_type_t = 2;
pub const ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES: _ze_structure_type_t = 3;
pub const ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES: _ze_structure_type_t = 4;
pub const ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES: _ze_structure_type_t = 5;
pub const ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES: _ze_structure_type_t = 6;
pub const ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES: _ze_structure_type_t = 7;
pub const ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES: _ze_structure_type_t = 8;
pub const ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES: _ze_structure_type_t = 9;
pub const ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES: _ze_structure_type_t = 10;
pub const ZE_STRUCTURE_TYPE_DEVICE_P2P_PROPERTIES: _ze_structure_type_t = 11;
pub const ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES: _ze_structure_type_t = 12;
pub const ZE_STRUCTURE_TYPE_CONTEXT_DESC: _ze_structure_type_t = 13;
pub const ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC: _ze_structure_type_t = 14;
pub const ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC: _ze_structure_type_t = 15;
pub const ZE_STRUCTURE_TYPE_EVENT_POOL_DESC: _ze_structure_type_t = 16;
pub const ZE_STRUCTURE_TYPE_EVENT_DESC: _ze_structure_type_t = 17;
pub const ZE_STRUCTURE_TYPE_FENCE_DESC: _ze_structure_type_t = 18;
pub const ZE_STRUCTURE_TYPE_IMAGE_DESC: _ze_structure_type_t = 19;
pub const ZE_STRUCTURE_TYPE_IMAGE_PROPERTIES: _ze_structure_type_t = 20;
pub const ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC: _ze_structure_type_t = 21;
pub const ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC: _ze_structure_type_t = 22;
pub const ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES: _ze_structure_type_t = 23;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC: _ze_structure_type_t = 24;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD: _ze_structure_type_t = 25;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD: _ze_structure_type_t = 26;
pub const ZE_STRUCTURE_TYPE_MODULE_DESC: _ze_structure_type_t = 27;
pub const ZE_STRUCTURE_TYPE_MODULE_PROPERTIES: _ze_structure_type_t = 28;
pub const ZE_STRUCTURE_TYPE_KERNEL_DESC: _ze_structure_type_t = 29;
pub const ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES: _ze_structure_type_t = 30;
pub const ZE_STRUCTURE_TYPE_SAMPLER_DESC: _ze_structure_type_t = 31;
pub const ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC: _ze_structure_type_t = 32;
pub const ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES: _ze_structure_type_t = 33;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_WIN32: _ze_structure_type_t = 34;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_WIN32: _ze_structure_type_t = 35;
pub const ZE_STRUCTURE_TYPE_DEVICE_RAYTRACING_EXT_PROPERTIES: _ze_structure_type_t = 65537;
pub const ZE_STRUCTURE_TYPE_RAYTRACING_MEM_ALLOC_EXT_DESC: _ze_structure_type_t = 65538;
pub const ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES: _ze_structure_type_t = 65539;
pub const ZE_STRUCTURE_TYPE_CACHE_RESERVATION_EXT_DESC: _ze_structure_type_t = 65540;
pub const ZE_STRUCTURE_TYPE_EU_COUNT_EXT: _ze_structure_type_t = 65541;
pub const ZE_STRUCTURE_TYPE_SRGB_EXT_DESC: _ze_structure_type_t = 65542;
pub const ZE_STRUCTURE_TYPE_LINKAGE_INSPECTION_EXT_DESC: _ze_structure_type_t = 65543;
pub const ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES: _ze_structure_type_t = 65544;
pub const ZE_STRUCTURE_TYPE_DRIVER_MEMORY_FREE_EXT_PROPERTIES: _ze_structure_type_t = 65545;
pub const ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC: _ze_structure_type_t = 65546;
pub const ZE_STRUCTURE_TYPE_MEMORY_COMPRESSION_HINTS_EXT_DESC: _ze_structure_type_t = 65547;
pub const ZE_STRUCTURE_TYPE_IMAGE_ALLOCATION_EXT_PROPERTIES: _ze_structure_type_t = 65548;
pub const ZE_STRUCTURE_TYPE_DEVICE_LUID_EXT_PROPERTIES: _ze_structure_type_t = 65549;
pub const ZE_STRUCTURE_TYPE_DEVICE_MEMORY_EXT_PROPERTIES: _ze_structure_type_t = 65550;
pub const ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT: _ze_structure_type_t = 65551;
pub const ZE_STRUCTURE_TYPE_IMAGE_VIEW_PLANAR_EXT_DESC: _ze_structure_type_t = 65552;
pub const ZE_STRUCTURE_TYPE_EVENT_QUERY_KERNEL_TIMESTAMPS_EXT_PROPERTIES: _ze_structure_type_t = 65553;
pub const ZE_STRUCTURE_TYPE_EVENT_QUERY_KERNEL_TIMESTAMPS_RESULTS_EXT_PROPERTIES: _ze_structure_type_t = 65554;
pub const ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES: _ze_structure_type_t = 65555;
pub const ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC: _ze_structure_type_t = 131073;
pub const ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC: _ze_structure_type_t = 131074;
pub const ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_PROPERTIES: _ze_structure_type_t = 131075;
pub const ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_DESC: _ze_structure_type_t = 131076;
pub const ZE_STRUCTURE_TYPE_IMAGE_VIEW_PLANAR_EXP_DESC: _ze_structure_type_t = 131077;
pub const ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2: _ze_structure_type_t = 131078;
pub const ZE_STRUCTURE_TYPE_IMAGE_MEMORY_EXP_PROPERTIES: _ze_structure_type_t = 131079;
pub const ZE_STRUCTURE_TYPE_POWER_SAVING_HINT_EXP_DESC: _ze_structure_type_t = 131080;
pub const ZE_STRUCTURE_TYPE_COPY_BANDWIDTH_EXP_PROPERTIES: _ze_structure_type_t = 131081;
pub const ZE_STRUCTURE_TYPE_DEVICE_P2P_BANDWIDTH_EXP_PROPERTIES: _ze_structure_type_t = 131082;
pub const ZE_STRUCTURE_TYPE_FABRIC_VERTEX_EXP_PROPERTIES: _ze_structure_type_t = 131083;
pub const ZE_STRUCTURE_TYPE_FABRIC_EDGE_EXP_PROPERTIES: _ze_structure_type_t = 131084;
pub const ZE_STRUCTURE_TYPE_MEMORY_SUB_ALLOCATIONS_EXP_PROPERTIES: _ze_structure_type_t = 131085;
pub const ZE_STRUCTURE_TYPE_RTAS_BUILDER_EXP_DESC: _ze_structure_type_t = 131086;
pub const ZE_STRUCTURE_TYPE_RTAS_BUILDER_BUILD_OP_EXP_DESC: _ze_structure_type_t = 131087;
pub const ZE_STRUCTURE_TYPE_RTAS_BUILDER_EXP_PROPERTIES: _ze_structure_type_t = 131088;
pub const ZE_STRUCTURE_TYPE_RTAS_PARALLEL_OPERATION_EXP_PROPERTIES: _ze_structure_type_t = 131089;
pub const ZE_STRUCTURE_TYPE_RTAS_DEVICE_EXP_PROPERTIES: _ze_structure_type_t = 131090;
pub const ZE_STRUCTURE_TYPE_RTAS_GEOMETRY_AABBS_EXP_CB_PARAMS: _ze_structure_type_t = 131091;
pub const ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC: _ze_structure_type_t = 131092;
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES: _ze_structure_type_t = 131093;
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC: _ze_structure_type_t = 131094;
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC: _ze_structure_type_t = 131095;
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC: _ze_structure_type_t = 131096;
pub const ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC: _ze_structure_type_t = 131097;
pub const ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC: _ze_structure_type_t = 131098;
pub const ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC: _ze_structure_type_t = 131099;
pub const ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC: _ze_structure_type_t = 131100;
pub const ZE_STRUCTURE_TYPE_PITCHED_ALLOC_DEVICE_EXP_PROPERTIES: _ze_structure_type_t = 131101;
pub const ZE_STRUCTURE_TYPE_BINDLESS_IMAGE_EXP_DESC: _ze_structure_type_t = 131102;
pub const ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC: _ze_structure_type_t = 131103;
pub const ZE_STRUCTURE_TYPE_MUTABLE_GRAPH_ARGUMENT_EXP_DESC: _ze_structure_type_t = 131104;
pub const ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC: _ze_structure_type_t = 131105;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_EXT_DESC: _ze_structure_type_t = 131106;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_WIN32_EXT_DESC: _ze_structure_type_t = 131107;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_FD_EXT_DESC: _ze_structure_type_t = 131108;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_EXT: _ze_structure_type_t = 131109;
pub const ZE_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_WAIT_PARAMS_EXT: _ze_structure_type_t = 131110;
pub const ZE_STRUCTURE_TYPE_DRIVER_DDI_HANDLES_EXT_PROPERTIES: _ze_structure_type_t = 131111;
pub const ZE_STRUCTURE_TYPE_FORCE_UINT32: _ze_structure_type_t = 2147483647;
pub type _ze_structure_type_t = ::core::ffi::c_uint;
pub use self::_ze_structure_type_t as ze_structure_type_t;
pub type ze_driver_uuid_t = _ze_driver_uuid_t;
pub type ze_driver_properties_t = _ze_driver_properties_t;
pub type ze_device_uuid_t = _ze_device_uuid_t;
pub type ze_device_properties_t = _ze_device_properties_t;
pub type ze_device_memory_properties_t = _ze_device_memory_properties_t;
pub type ze_pci_address_ext_t = _ze_pci_address_ext_t;
pub type ze_pci_speed_ext_t = _ze_pci_speed_ext_t;
pub type ze_pci_ext_properties_t = _ze_pci_ext_properties_t;
pub type ze_init_flags_t = u32;
pub const ZE_INIT_FLAG_GPU_ONLY: _ze_init_flag_t = 1;
pub const ZE_INIT_FLAG_VPU_ONLY: _ze_init_flag_t = 2;
pub const ZE_INIT_FLAG_FORCE_UINT32: _ze_init_flag_t = 2147483647;
pub type _ze_init_flag_t = ::core::ffi::c_uint;
pub const ZE_API_VERSION_1_0: _ze_api_version_t = 65536;
pub const ZE_API_VERSION_1_1: _ze_api_version_t = 65537;
pub const ZE_API_VERSION_1_2: _ze_api_version_t = 65538;
pub const ZE_API_VERSION_1_3: _ze_api_version_t = 65539;
pub const ZE_API_VERSION_1_4: _ze_api_version_t = 65540;
pub const ZE_API_VERSION_1_5: _ze_api_version_t = 65541;
pub const ZE_API_VERSION_1_6: _ze_api_version_t = 65542;
pub const ZE_API_VERSION_1_7: _ze_api_version_t = 65543;
pub const ZE_API_VERSION_1_8: _ze_api_version_t = 65544;
pub const ZE_API_VERSION_1_9: _ze_api_version_t = 65545;
pub const ZE_API_VERSION_1_10: _ze_api_version_t = 65546;
pub const ZE_API_VERSION_1_11: _ze_api_version_t = 65547;
pub const ZE_API_VERSION_1_12: _ze_api_version_t = 65548;
pub const ZE_API_VERSION_CURRENT: _ze_api_version_t = 65548;
pub const ZE_API_VERSION_FORCE_UINT32: _ze_api_version_t = 2147483647;
pub type _ze_api_version_t = ::core::ffi::c_uint;
pub use self::_ze_api_version_t as ze_api_version_t;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct _ze_driver_uuid_t {
    pub id: [u8; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_driver_uuid_t"][::core::mem::size_of::<_ze_driver_uuid_t>() - 16usize];
    ["Alignment of _ze_driver_uuid_t"][::core::mem::align_of::<_ze_driver_uuid_t>() - 1usize];
    ["Offset of field: _ze_driver_uuid_t::id"][::core::mem::offset_of!(_ze_driver_uuid_t, id) - 0usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _ze_driver_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub uuid: ze_driver_uuid_t,
    pub driverVersion: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_driver_properties_t"][::core::mem::size_of::<_ze_driver_properties_t>() - 40usize];
    ["Alignment of _ze_driver_properties_t"][::core::mem::align_of::<_ze_driver_properties_t>() - 8usize];
    ["Offset of field: _ze_driver_properties_t::stype"]
        [::core::mem::offset_of!(_ze_driver_properties_t, stype) - 0usize];
    ["Offset of field: _ze_driver_properties_t::pNext"]
        [::core::mem::offset_of!(_ze_driver_properties_t, pNext) - 8usize];
    ["Offset of field: _ze_driver_properties_t::uuid"]
        [::core::mem::offset_of!(_ze_driver_properties_t, uuid) - 16usize];
    ["Offset of field: _ze_driver_properties_t::driverVersion"]
        [::core::mem::offset_of!(_ze_driver_properties_t, driverVersion) - 32usize];
};
impl Default for _ze_driver_properties_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const ZE_DEVICE_TYPE_GPU: _ze_device_type_t = 1;
pub const ZE_DEVICE_TYPE_CPU: _ze_device_type_t = 2;
pub const ZE_DEVICE_TYPE_FPGA: _ze_device_type_t = 3;
pub const ZE_DEVICE_TYPE_MCA: _ze_device_type_t = 4;
pub const ZE_DEVICE_TYPE_VPU: _ze_device_type_t = 5;
pub const ZE_DEVICE_TYPE_FORCE_UINT32: _ze_device_type_t = 2147483647;
pub type _ze_device_type_t = ::core::ffi::c_uint;
pub use self::_ze_device_type_t as ze_device_type_t;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct _ze_device_uuid_t {
    pub id: [u8; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_device_uuid_t"][::core::mem::size_of::<_ze_device_uuid_t>() - 16usize];
    ["Alignment of _ze_device_uuid_t"][::core::mem::align_of::<_ze_device_uuid_t>() - 1usize];
    ["Offset of field: _ze_device_uuid_t::id"][::core::mem::offset_of!(_ze_device_uuid_t, id) - 0usize];
};
pub type ze_device_property_flags_t = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _ze_device_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub type_: ze_device_type_t,
    pub vendorId: u32,
    pub deviceId: u32,
    pub flags: ze_device_property_flags_t,
    pub subdeviceId: u32,
    pub coreClockRate: u32,
    pub maxMemAllocSize: u64,
    pub maxHardwareContexts: u32,
    pub maxCommandQueuePriority: u32,
    pub numThreadsPerEU: u32,
    pub physicalEUSimdWidth: u32,
    pub numEUsPerSubslice: u32,
    pub numSubslicesPerSlice: u32,
    pub numSlices: u32,
    pub timerResolution: u64,
    pub timestampValidBits: u32,
    pub kernelTimestampValidBits: u32,
    pub uuid: ze_device_uuid_t,
    pub name: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_device_properties_t"][::core::mem::size_of::<_ze_device_properties_t>() - 368usize];
    ["Alignment of _ze_device_properties_t"][::core::mem::align_of::<_ze_device_properties_t>() - 8usize];
    ["Offset of field: _ze_device_properties_t::stype"]
        [::core::mem::offset_of!(_ze_device_properties_t, stype) - 0usize];
    ["Offset of field: _ze_device_properties_t::pNext"]
        [::core::mem::offset_of!(_ze_device_properties_t, pNext) - 8usize];
    ["Offset of field: _ze_device_properties_t::type_"]
        [::core::mem::offset_of!(_ze_device_properties_t, type_) - 16usize];
    ["Offset of field: _ze_device_properties_t::vendorId"]
        [::core::mem::offset_of!(_ze_device_properties_t, vendorId) - 20usize];
    ["Offset of field: _ze_device_properties_t::deviceId"]
        [::core::mem::offset_of!(_ze_device_properties_t, deviceId) - 24usize];
    ["Offset of field: _ze_device_properties_t::flags"]
        [::core::mem::offset_of!(_ze_device_properties_t, flags) - 28usize];
    ["Offset of field: _ze_device_properties_t::subdeviceId"]
        [::core::mem::offset_of!(_ze_device_properties_t, subdeviceId) - 32usize];
    ["Offset of field: _ze_device_properties_t::coreClockRate"]
        [::core::mem::offset_of!(_ze_device_properties_t, coreClockRate) - 36usize];
    ["Offset of field: _ze_device_properties_t::maxMemAllocSize"]
        [::core::mem::offset_of!(_ze_device_properties_t, maxMemAllocSize) - 40usize];
    ["Offset of field: _ze_device_properties_t::maxHardwareContexts"]
        [::core::mem::offset_of!(_ze_device_properties_t, maxHardwareContexts) - 48usize];
    ["Offset of field: _ze_device_properties_t::maxCommandQueuePriority"]
        [::core::mem::offset_of!(_ze_device_properties_t, maxCommandQueuePriority) - 52usize];
    ["Offset of field: _ze_device_properties_t::numThreadsPerEU"]
        [::core::mem::offset_of!(_ze_device_properties_t, numThreadsPerEU) - 56usize];
    ["Offset of field: _ze_device_properties_t::physicalEUSimdWidth"]
        [::core::mem::offset_of!(_ze_device_properties_t, physicalEUSimdWidth) - 60usize];
    ["Offset of field: _ze_device_properties_t::numEUsPerSubslice"]
        [::core::mem::offset_of!(_ze_device_properties_t, numEUsPerSubslice) - 64usize];
    ["Offset of field: _ze_device_properties_t::numSubslicesPerSlice"]
        [::core::mem::offset_of!(_ze_device_properties_t, numSubslicesPerSlice) - 68usize];
    ["Offset of field: _ze_device_properties_t::numSlices"]
        [::core::mem::offset_of!(_ze_device_properties_t, numSlices) - 72usize];
    ["Offset of field: _ze_device_properties_t::timerResolution"]
        [::core::mem::offset_of!(_ze_device_properties_t, timerResolution) - 80usize];
    ["Offset of field: _ze_device_properties_t::timestampValidBits"]
        [::core::mem::offset_of!(_ze_device_properties_t, timestampValidBits) - 88usize];
    ["Offset of field: _ze_device_properties_t::kernelTimestampValidBits"]
        [::core::mem::offset_of!(_ze_device_properties_t, kernelTimestampValidBits) - 92usize];
    ["Offset of field: _ze_device_properties_t::uuid"]
        [::core::mem::offset_of!(_ze_device_properties_t, uuid) - 96usize];
    ["Offset of field: _ze_device_properties_t::name"]
        [::core::mem::offset_of!(_ze_device_properties_t, name) - 112usize];
};
impl Default for _ze_device_properties_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type ze_device_memory_property_flags_t = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _ze_device_memory_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub flags: ze_device_memory_property_flags_t,
    pub maxClockRate: u32,
    pub maxBusWidth: u32,
    pub totalSize: u64,
    pub name: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_device_memory_properties_t"][::core::mem::size_of::<_ze_device_memory_properties_t>() - 296usize];
    ["Alignment of _ze_device_memory_properties_t"][::core::mem::align_of::<_ze_device_memory_properties_t>() - 8usize];
    ["Offset of field: _ze_device_memory_properties_t::stype"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, stype) - 0usize];
    ["Offset of field: _ze_device_memory_properties_t::pNext"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, pNext) - 8usize];
    ["Offset of field: _ze_device_memory_properties_t::flags"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, flags) - 16usize];
    ["Offset of field: _ze_device_memory_properties_t::maxClockRate"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, maxClockRate) - 20usize];
    ["Offset of field: _ze_device_memory_properties_t::maxBusWidth"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, maxBusWidth) - 24usize];
    ["Offset of field: _ze_device_memory_properties_t::totalSize"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, totalSize) - 32usize];
    ["Offset of field: _ze_device_memory_properties_t::name"]
        [::core::mem::offset_of!(_ze_device_memory_properties_t, name) - 40usize];
};
impl Default for _ze_device_memory_properties_t {
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
pub struct _ze_pci_address_ext_t {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub function: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_pci_address_ext_t"][::core::mem::size_of::<_ze_pci_address_ext_t>() - 16usize];
    ["Alignment of _ze_pci_address_ext_t"][::core::mem::align_of::<_ze_pci_address_ext_t>() - 4usize];
    ["Offset of field: _ze_pci_address_ext_t::domain"][::core::mem::offset_of!(_ze_pci_address_ext_t, domain) - 0usize];
    ["Offset of field: _ze_pci_address_ext_t::bus"][::core::mem::offset_of!(_ze_pci_address_ext_t, bus) - 4usize];
    ["Offset of field: _ze_pci_address_ext_t::device"][::core::mem::offset_of!(_ze_pci_address_ext_t, device) - 8usize];
    ["Offset of field: _ze_pci_address_ext_t::function"]
        [::core::mem::offset_of!(_ze_pci_address_ext_t, function) - 12usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct _ze_pci_speed_ext_t {
    pub genVersion: i32,
    pub width: i32,
    pub maxBandwidth: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_pci_speed_ext_t"][::core::mem::size_of::<_ze_pci_speed_ext_t>() - 16usize];
    ["Alignment of _ze_pci_speed_ext_t"][::core::mem::align_of::<_ze_pci_speed_ext_t>() - 8usize];
    ["Offset of field: _ze_pci_speed_ext_t::genVersion"]
        [::core::mem::offset_of!(_ze_pci_speed_ext_t, genVersion) - 0usize];
    ["Offset of field: _ze_pci_speed_ext_t::width"][::core::mem::offset_of!(_ze_pci_speed_ext_t, width) - 4usize];
    ["Offset of field: _ze_pci_speed_ext_t::maxBandwidth"]
        [::core::mem::offset_of!(_ze_pci_speed_ext_t, maxBandwidth) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _ze_pci_ext_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub address: ze_pci_address_ext_t,
    pub maxSpeed: ze_pci_speed_ext_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ze_pci_ext_properties_t"][::core::mem::size_of::<_ze_pci_ext_properties_t>() - 48usize];
    ["Alignment of _ze_pci_ext_properties_t"][::core::mem::align_of::<_ze_pci_ext_properties_t>() - 8usize];
    ["Offset of field: _ze_pci_ext_properties_t::stype"]
        [::core::mem::offset_of!(_ze_pci_ext_properties_t, stype) - 0usize];
    ["Offset of field: _ze_pci_ext_properties_t::pNext"]
        [::core::mem::offset_of!(_ze_pci_ext_properties_t, pNext) - 8usize];
    ["Offset of field: _ze_pci_ext_properties_t::address"]
        [::core::mem::offset_of!(_ze_pci_ext_properties_t, address) - 16usize];
    ["Offset of field: _ze_pci_ext_properties_t::maxSpeed"]
        [::core::mem::offset_of!(_ze_pci_ext_properties_t, maxSpeed) - 32usize];
};
impl Default for _ze_pci_ext_properties_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type zes_driver_handle_t = ze_driver_handle_t;
pub type zes_device_handle_t = ze_device_handle_t;
#[repr(C)]
#[derive(Debug)]
pub struct _zes_pwr_handle_t {
    _unused: [u8; 0],
}
pub type zes_pwr_handle_t = *mut _zes_pwr_handle_t;
#[repr(C)]
#[derive(Debug)]
pub struct _zes_mem_handle_t {
    _unused: [u8; 0],
}
pub type zes_mem_handle_t = *mut _zes_mem_handle_t;
#[repr(C)]
#[derive(Debug)]
pub struct _zes_temp_handle_t {
    _unused: [u8; 0],
}
pub type zes_temp_handle_t = *mut _zes_temp_handle_t;
pub const ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES: _zes_structure_type_t = 1;
pub const ZES_STRUCTURE_TYPE_PCI_PROPERTIES: _zes_structure_type_t = 2;
pub const ZES_STRUCTURE_TYPE_PCI_BAR_PROPERTIES: _zes_structure_type_t = 3;
pub const ZES_STRUCTURE_TYPE_DIAG_PROPERTIES: _zes_structure_type_t = 4;
pub const ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES: _zes_structure_type_t = 5;
pub const ZES_STRUCTURE_TYPE_FABRIC_PORT_PROPERTIES: _zes_structure_type_t = 6;
pub const ZES_STRUCTURE_TYPE_FAN_PROPERTIES: _zes_structure_type_t = 7;
pub const ZES_STRUCTURE_TYPE_FIRMWARE_PROPERTIES: _zes_structure_type_t = 8;
pub const ZES_STRUCTURE_TYPE_FREQ_PROPERTIES: _zes_structure_type_t = 9;
pub const ZES_STRUCTURE_TYPE_LED_PROPERTIES: _zes_structure_type_t = 10;
pub const ZES_STRUCTURE_TYPE_MEM_PROPERTIES: _zes_structure_type_t = 11;
pub const ZES_STRUCTURE_TYPE_PERF_PROPERTIES: _zes_structure_type_t = 12;
pub const ZES_STRUCTURE_TYPE_POWER_PROPERTIES: _zes_structure_type_t = 13;
pub const ZES_STRUCTURE_TYPE_PSU_PROPERTIES: _zes_structure_type_t = 14;
pub const ZES_STRUCTURE_TYPE_RAS_PROPERTIES: _zes_structure_type_t = 15;
pub const ZES_STRUCTURE_TYPE_SCHED_PROPERTIES: _zes_structure_type_t = 16;
pub const ZES_STRUCTURE_TYPE_SCHED_TIMEOUT_PROPERTIES: _zes_structure_type_t = 17;
pub const ZES_STRUCTURE_TYPE_SCHED_TIMESLICE_PROPERTIES: _zes_structure_type_t = 18;
pub const ZES_STRUCTURE_TYPE_STANDBY_PROPERTIES: _zes_structure_type_t = 19;
pub const ZES_STRUCTURE_TYPE_TEMP_PROPERTIES: _zes_structure_type_t = 20;
pub const ZES_STRUCTURE_TYPE_DEVICE_STATE: _zes_structure_type_t = 21;
pub const ZES_STRUCTURE_TYPE_PROCESS_STATE: _zes_structure_type_t = 22;
pub const ZES_STRUCTURE_TYPE_PCI_STATE: _zes_structure_type_t = 23;
pub const ZES_STRUCTURE_TYPE_FABRIC_PORT_CONFIG: _zes_structure_type_t = 24;
pub const ZES_STRUCTURE_TYPE_FABRIC_PORT_STATE: _zes_structure_type_t = 25;
pub const ZES_STRUCTURE_TYPE_FAN_CONFIG: _zes_structure_type_t = 26;
pub const ZES_STRUCTURE_TYPE_FREQ_STATE: _zes_structure_type_t = 27;
pub const ZES_STRUCTURE_TYPE_OC_CAPABILITIES: _zes_structure_type_t = 28;
pub const ZES_STRUCTURE_TYPE_LED_STATE: _zes_structure_type_t = 29;
pub const ZES_STRUCTURE_TYPE_MEM_STATE: _zes_structure_type_t = 30;
pub const ZES_STRUCTURE_TYPE_PSU_STATE: _zes_structure_type_t = 31;
pub const ZES_STRUCTURE_TYPE_BASE_STATE: _zes_structure_type_t = 32;
pub const ZES_STRUCTURE_TYPE_RAS_CONFIG: _zes_structure_type_t = 33;
pub const ZES_STRUCTURE_TYPE_RAS_STATE: _zes_structure_type_t = 34;
pub const ZES_STRUCTURE_TYPE_TEMP_CONFIG: _zes_structure_type_t = 35;
pub const ZES_STRUCTURE_TYPE_PCI_BAR_PROPERTIES_1_2: _zes_structure_type_t = 36;
pub const ZES_STRUCTURE_TYPE_DEVICE_ECC_DESC: _zes_structure_type_t = 37;
pub const ZES_STRUCTURE_TYPE_DEVICE_ECC_PROPERTIES: _zes_structure_type_t = 38;
pub const ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC: _zes_structure_type_t = 39;
pub const ZES_STRUCTURE_TYPE_POWER_EXT_PROPERTIES: _zes_structure_type_t = 40;
pub const ZES_STRUCTURE_TYPE_OVERCLOCK_PROPERTIES: _zes_structure_type_t = 41;
pub const ZES_STRUCTURE_TYPE_FABRIC_PORT_ERROR_COUNTERS: _zes_structure_type_t = 42;
pub const ZES_STRUCTURE_TYPE_ENGINE_EXT_PROPERTIES: _zes_structure_type_t = 43;
pub const ZES_STRUCTURE_TYPE_RESET_PROPERTIES: _zes_structure_type_t = 44;
pub const ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES: _zes_structure_type_t = 45;
pub const ZES_STRUCTURE_TYPE_DEVICE_UUID: _zes_structure_type_t = 46;
pub const ZES_STRUCTURE_TYPE_POWER_DOMAIN_EXP_PROPERTIES: _zes_structure_type_t = 131073;
pub const ZES_STRUCTURE_TYPE_MEM_BANDWIDTH_COUNTER_BITS_EXP_PROPERTIES: _zes_structure_type_t = 131074;
pub const ZES_STRUCTURE_TYPE_MEMORY_PAGE_OFFLINE_STATE_EXP: _zes_structure_type_t = 131075;
pub const ZES_STRUCTURE_TYPE_SUBDEVICE_EXP_PROPERTIES: _zes_structure_type_t = 131076;
pub const ZES_STRUCTURE_TYPE_VF_EXP_PROPERTIES: _zes_structure_type_t = 131077;
pub const ZES_STRUCTURE_TYPE_VF_UTIL_MEM_EXP: _zes_structure_type_t = 131078;
pub const ZES_STRUCTURE_TYPE_VF_UTIL_ENGINE_EXP: _zes_structure_type_t = 131079;
pub const ZES_STRUCTURE_TYPE_VF_EXP_CAPABILITIES: _zes_structure_type_t = 131080;
pub const ZES_STRUCTURE_TYPE_VF_UTIL_MEM_EXP2: _zes_structure_type_t = 131081;
pub const ZES_STRUCTURE_TYPE_VF_UTIL_ENGINE_EXP2: _zes_structure_type_t = 131088;
pub const ZES_STRUCTURE_TYPE_VF_EXP2_CAPABILITIES: _zes_structure_type_t = 131089;
pub const ZES_STRUCTURE_TYPE_FORCE_UINT32: _zes_structure_type_t = 2147483647;
pub type _zes_structure_type_t = ::core::ffi::c_uint;
pub use self::_zes_structure_type_t as zes_structure_type_t;
pub type zes_pci_address_t = _zes_pci_address_t;
pub type zes_pci_speed_t = _zes_pci_speed_t;
pub type zes_pci_properties_t = _zes_pci_properties_t;
pub type zes_pci_state_t = _zes_pci_state_t;
pub type zes_device_ecc_properties_t = _zes_device_ecc_properties_t;
pub type zes_mem_properties_t = _zes_mem_properties_t;
pub type zes_mem_state_t = _zes_mem_state_t;
pub type zes_mem_bandwidth_t = _zes_mem_bandwidth_t;
pub type zes_power_properties_t = _zes_power_properties_t;
pub type zes_power_energy_counter_t = _zes_power_energy_counter_t;
pub type zes_temp_properties_t = _zes_temp_properties_t;
pub type zes_power_limit_ext_desc_t = _zes_power_limit_ext_desc_t;
pub type zes_power_ext_properties_t = _zes_power_ext_properties_t;
pub type zes_init_flags_t = u32;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct _zes_pci_address_t {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub function: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_pci_address_t"][::core::mem::size_of::<_zes_pci_address_t>() - 16usize];
    ["Alignment of _zes_pci_address_t"][::core::mem::align_of::<_zes_pci_address_t>() - 4usize];
    ["Offset of field: _zes_pci_address_t::domain"][::core::mem::offset_of!(_zes_pci_address_t, domain) - 0usize];
    ["Offset of field: _zes_pci_address_t::bus"][::core::mem::offset_of!(_zes_pci_address_t, bus) - 4usize];
    ["Offset of field: _zes_pci_address_t::device"][::core::mem::offset_of!(_zes_pci_address_t, device) - 8usize];
    ["Offset of field: _zes_pci_address_t::function"][::core::mem::offset_of!(_zes_pci_address_t, function) - 12usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct _zes_pci_speed_t {
    pub gen_: i32,
    pub width: i32,
    pub maxBandwidth: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_pci_speed_t"][::core::mem::size_of::<_zes_pci_speed_t>() - 16usize];
    ["Alignment of _zes_pci_speed_t"][::core::mem::align_of::<_zes_pci_speed_t>() - 8usize];
    ["Offset of field: _zes_pci_speed_t::gen_"][::core::mem::offset_of!(_zes_pci_speed_t, gen_) - 0usize];
    ["Offset of field: _zes_pci_speed_t::width"][::core::mem::offset_of!(_zes_pci_speed_t, width) - 4usize];
    ["Offset of field: _zes_pci_speed_t::maxBandwidth"]
        [::core::mem::offset_of!(_zes_pci_speed_t, maxBandwidth) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _zes_pci_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub address: zes_pci_address_t,
    pub maxSpeed: zes_pci_speed_t,
    pub haveBandwidthCounters: ze_bool_t,
    pub havePacketCounters: ze_bool_t,
    pub haveReplayCounters: ze_bool_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_pci_properties_t"][::core::mem::size_of::<_zes_pci_properties_t>() - 56usize];
    ["Alignment of _zes_pci_properties_t"][::core::mem::align_of::<_zes_pci_properties_t>() - 8usize];
    ["Offset of field: _zes_pci_properties_t::stype"][::core::mem::offset_of!(_zes_pci_properties_t, stype) - 0usize];
    ["Offset of field: _zes_pci_properties_t::pNext"][::core::mem::offset_of!(_zes_pci_properties_t, pNext) - 8usize];
    ["Offset of field: _zes_pci_properties_t::address"]
        [::core::mem::offset_of!(_zes_pci_properties_t, address) - 16usize];
    ["Offset of field: _zes_pci_properties_t::maxSpeed"]
        [::core::mem::offset_of!(_zes_pci_properties_t, maxSpeed) - 32usize];
    ["Offset of field: _zes_pci_properties_t::haveBandwidthCounters"]
        [::core::mem::offset_of!(_zes_pci_properties_t, haveBandwidthCounters) - 48usize];
    ["Offset of field: _zes_pci_properties_t::havePacketCounters"]
        [::core::mem::offset_of!(_zes_pci_properties_t, havePacketCounters) - 49usize];
    ["Offset of field: _zes_pci_properties_t::haveReplayCounters"]
        [::core::mem::offset_of!(_zes_pci_properties_t, haveReplayCounters) - 50usize];
};
impl Default for _zes_pci_properties_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const ZES_PCI_LINK_STATUS_UNKNOWN: _zes_pci_link_status_t = 0;
pub const ZES_PCI_LINK_STATUS_GOOD: _zes_pci_link_status_t = 1;
pub const ZES_PCI_LINK_STATUS_QUALITY_ISSUES: _zes_pci_link_status_t = 2;
pub const ZES_PCI_LINK_STATUS_STABILITY_ISSUES: _zes_pci_link_status_t = 3;
pub const ZES_PCI_LINK_STATUS_FORCE_UINT32: _zes_pci_link_status_t = 2147483647;
pub type _zes_pci_link_status_t = ::core::ffi::c_uint;
pub use self::_zes_pci_link_status_t as zes_pci_link_status_t;
pub type zes_pci_link_qual_issue_flags_t = u32;
pub type zes_pci_link_stab_issue_flags_t = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _zes_pci_state_t {
    pub stype: zes_structure_type_t,
    pub pNext: *const ::core::ffi::c_void,
    pub status: zes_pci_link_status_t,
    pub qualityIssues: zes_pci_link_qual_issue_flags_t,
    pub stabilityIssues: zes_pci_link_stab_issue_flags_t,
    pub speed: zes_pci_speed_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_pci_state_t"][::core::mem::size_of::<_zes_pci_state_t>() - 48usize];
    ["Alignment of _zes_pci_state_t"][::core::mem::align_of::<_zes_pci_state_t>() - 8usize];
    ["Offset of field: _zes_pci_state_t::stype"][::core::mem::offset_of!(_zes_pci_state_t, stype) - 0usize];
    ["Offset of field: _zes_pci_state_t::pNext"][::core::mem::offset_of!(_zes_pci_state_t, pNext) - 8usize];
    ["Offset of field: _zes_pci_state_t::status"][::core::mem::offset_of!(_zes_pci_state_t, status) - 16usize];
    ["Offset of field: _zes_pci_state_t::qualityIssues"]
        [::core::mem::offset_of!(_zes_pci_state_t, qualityIssues) - 20usize];
    ["Offset of field: _zes_pci_state_t::stabilityIssues"]
        [::core::mem::offset_of!(_zes_pci_state_t, stabilityIssues) - 24usize];
    ["Offset of field: _zes_pci_state_t::speed"][::core::mem::offset_of!(_zes_pci_state_t, speed) - 32usize];
};
impl Default for _zes_pci_state_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const ZES_DEVICE_ECC_STATE_UNAVAILABLE: _zes_device_ecc_state_t = 0;
pub const ZES_DEVICE_ECC_STATE_ENABLED: _zes_device_ecc_state_t = 1;
pub const ZES_DEVICE_ECC_STATE_DISABLED: _zes_device_ecc_state_t = 2;
pub const ZES_DEVICE_ECC_STATE_FORCE_UINT32: _zes_device_ecc_state_t = 2147483647;
pub type _zes_device_ecc_state_t = ::core::ffi::c_uint;
pub use self::_zes_device_ecc_state_t as zes_device_ecc_state_t;
pub const ZES_DEVICE_ACTION_NONE: _zes_device_action_t = 0;
pub const ZES_DEVICE_ACTION_WARM_CARD_RESET: _zes_device_action_t = 1;
pub const ZES_DEVICE_ACTION_COLD_CARD_RESET: _zes_device_action_t = 2;
pub const ZES_DEVICE_ACTION_COLD_SYSTEM_REBOOT: _zes_device_action_t = 3;
pub const ZES_DEVICE_ACTION_FORCE_UINT32: _zes_device_action_t = 2147483647;
pub type _zes_device_action_t = ::core::ffi::c_uint;
pub use self::_zes_device_action_t as zes_device_action_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _zes_device_ecc_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub currentState: zes_device_ecc_state_t,
    pub pendingState: zes_device_ecc_state_t,
    pub pendingAction: zes_device_action_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_device_ecc_properties_t"][::core::mem::size_of::<_zes_device_ecc_properties_t>() - 32usize];
    ["Alignment of _zes_device_ecc_properties_t"][::core::mem::align_of::<_zes_device_ecc_properties_t>() - 8usize];
    ["Offset of field: _zes_device_ecc_properties_t::stype"]
        [::core::mem::offset_of!(_zes_device_ecc_properties_t, stype) - 0usize];
    ["Offset of field: _zes_device_ecc_properties_t::pNext"]
        [::core::mem::offset_of!(_zes_device_ecc_properties_t, pNext) - 8usize];
    ["Offset of field: _zes_device_ecc_properties_t::currentState"]
        [::core::mem::offset_of!(_zes_device_ecc_properties_t, currentState) - 16usize];
    ["Offset of field: _zes_device_ecc_properties_t::pendingState"]
        [::core::mem::offset_of!(_zes_device_ecc_properties_t, pendingState) - 20usize];
    ["Offset of field: _zes_device_ecc_properties_t::pendingAction"]
        [::core::mem::offset_of!(_zes_device_ecc_properties_t, pendingAction) - 24usize];
};
impl Default for _zes_device_ecc_properties_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const ZES_MEM_TYPE_HBM: _zes_mem_type_t = 0;
pub const ZES_MEM_TYPE_DDR: _zes_mem_type_t = 1;
pub const ZES_MEM_TYPE_DDR3: _zes_mem_type_t = 2;
pub const ZES_MEM_TYPE_DDR4: _zes_mem_type_t = 3;
pub const ZES_MEM_TYPE_DDR5: _zes_mem_type_t = 4;
pub const ZES_MEM_TYPE_LPDDR: _zes_mem_type_t = 5;
pub const ZES_MEM_TYPE_LPDDR3: _zes_mem_type_t = 6;
pub const ZES_MEM_TYPE_LPDDR4: _zes_mem_type_t = 7;
pub const ZES_MEM_TYPE_LPDDR5: _zes_mem_type_t = 8;
pub const ZES_MEM_TYPE_SRAM: _zes_mem_type_t = 9;
pub const ZES_MEM_TYPE_L1: _zes_mem_type_t = 10;
pub const ZES_MEM_TYPE_L3: _zes_mem_type_t = 11;
pub const ZES_MEM_TYPE_GRF: _zes_mem_type_t = 12;
pub const ZES_MEM_TYPE_SLM: _zes_mem_type_t = 13;
pub const ZES_MEM_TYPE_GDDR4: _zes_mem_type_t = 14;
pub const ZES_MEM_TYPE_GDDR5: _zes_mem_type_t = 15;
pub const ZES_MEM_TYPE_GDDR5X: _zes_mem_type_t = 16;
pub const ZES_MEM_TYPE_GDDR6: _zes_mem_type_t = 17;
pub const ZES_MEM_TYPE_GDDR6X: _zes_mem_type_t = 18;
pub const ZES_MEM_TYPE_GDDR7: _zes_mem_type_t = 19;
pub const ZES_MEM_TYPE_FORCE_UINT32: _zes_mem_type_t = 2147483647;
pub type _zes_mem_type_t = ::core::ffi::c_uint;
pub use self::_zes_mem_type_t as zes_mem_type_t;
pub const ZES_MEM_LOC_SYSTEM: _zes_mem_loc_t = 0;
pub const ZES_MEM_LOC_DEVICE: _zes_mem_loc_t = 1;
pub const ZES_MEM_LOC_FORCE_UINT32: _zes_mem_loc_t = 2147483647;
pub type _zes_mem_loc_t = ::core::ffi::c_uint;
pub use self::_zes_mem_loc_t as zes_mem_loc_t;
pub const ZES_MEM_HEALTH_UNKNOWN: _zes_mem_health_t = 0;
pub const ZES_MEM_HEALTH_OK: _zes_mem_health_t = 1;
pub const ZES_MEM_HEALTH_DEGRADED: _zes_mem_health_t = 2;
pub const ZES_MEM_HEALTH_CRITICAL: _zes_mem_health_t = 3;
pub const ZES_MEM_HEALTH_REPLACE: _zes_mem_health_t = 4;
pub const ZES_MEM_HEALTH_FORCE_UINT32: _zes_mem_health_t = 2147483647;
pub type _zes_mem_health_t = ::core::ffi::c_uint;
pub use self::_zes_mem_health_t as zes_mem_health_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _zes_mem_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub type_: zes_mem_type_t,
    pub onSubdevice: ze_bool_t,
    pub subdeviceId: u32,
    pub location: zes_mem_loc_t,
    pub physicalSize: u64,
    pub busWidth: i32,
    pub numChannels: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_mem_properties_t"][::core::mem::size_of::<_zes_mem_properties_t>() - 48usize];
    ["Alignment of _zes_mem_properties_t"][::core::mem::align_of::<_zes_mem_properties_t>() - 8usize];
    ["Offset of field: _zes_mem_properties_t::stype"][::core::mem::offset_of!(_zes_mem_properties_t, stype) - 0usize];
    ["Offset of field: _zes_mem_properties_t::pNext"][::core::mem::offset_of!(_zes_mem_properties_t, pNext) - 8usize];
    ["Offset of field: _zes_mem_properties_t::type_"][::core::mem::offset_of!(_zes_mem_properties_t, type_) - 16usize];
    ["Offset of field: _zes_mem_properties_t::onSubdevice"]
        [::core::mem::offset_of!(_zes_mem_properties_t, onSubdevice) - 20usize];
    ["Offset of field: _zes_mem_properties_t::subdeviceId"]
        [::core::mem::offset_of!(_zes_mem_properties_t, subdeviceId) - 24usize];
    ["Offset of field: _zes_mem_properties_t::location"]
        [::core::mem::offset_of!(_zes_mem_properties_t, location) - 28usize];
    ["Offset of field: _zes_mem_properties_t::physicalSize"]
        [::core::mem::offset_of!(_zes_mem_properties_t, physicalSize) - 32usize];
    ["Offset of field: _zes_mem_properties_t::busWidth"]
        [::core::mem::offset_of!(_zes_mem_properties_t, busWidth) - 40usize];
    ["Offset of field: _zes_mem_properties_t::numChannels"]
        [::core::mem::offset_of!(_zes_mem_properties_t, numChannels) - 44usize];
};
impl Default for _zes_mem_properties_t {
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
pub struct _zes_mem_state_t {
    pub stype: zes_structure_type_t,
    pub pNext: *const ::core::ffi::c_void,
    pub health: zes_mem_health_t,
    pub free: u64,
    pub size: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_mem_state_t"][::core::mem::size_of::<_zes_mem_state_t>() - 40usize];
    ["Alignment of _zes_mem_state_t"][::core::mem::align_of::<_zes_mem_state_t>() - 8usize];
    ["Offset of field: _zes_mem_state_t::stype"][::core::mem::offset_of!(_zes_mem_state_t, stype) - 0usize];
    ["Offset of field: _zes_mem_state_t::pNext"][::core::mem::offset_of!(_zes_mem_state_t, pNext) - 8usize];
    ["Offset of field: _zes_mem_state_t::health"][::core::mem::offset_of!(_zes_mem_state_t, health) - 16usize];
    ["Offset of field: _zes_mem_state_t::free"][::core::mem::offset_of!(_zes_mem_state_t, free) - 24usize];
    ["Offset of field: _zes_mem_state_t::size"][::core::mem::offset_of!(_zes_mem_state_t, size) - 32usize];
};
impl Default for _zes_mem_state_t {
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
pub struct _zes_mem_bandwidth_t {
    pub readCounter: u64,
    pub writeCounter: u64,
    pub maxBandwidth: u64,
    pub timestamp: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_mem_bandwidth_t"][::core::mem::size_of::<_zes_mem_bandwidth_t>() - 32usize];
    ["Alignment of _zes_mem_bandwidth_t"][::core::mem::align_of::<_zes_mem_bandwidth_t>() - 8usize];
    ["Offset of field: _zes_mem_bandwidth_t::readCounter"]
        [::core::mem::offset_of!(_zes_mem_bandwidth_t, readCounter) - 0usize];
    ["Offset of field: _zes_mem_bandwidth_t::writeCounter"]
        [::core::mem::offset_of!(_zes_mem_bandwidth_t, writeCounter) - 8usize];
    ["Offset of field: _zes_mem_bandwidth_t::maxBandwidth"]
        [::core::mem::offset_of!(_zes_mem_bandwidth_t, maxBandwidth) - 16usize];
    ["Offset of field: _zes_mem_bandwidth_t::timestamp"]
        [::core::mem::offset_of!(_zes_mem_bandwidth_t, timestamp) - 24usize];
};
pub const ZES_POWER_DOMAIN_UNKNOWN: _zes_power_domain_t = 0;
pub const ZES_POWER_DOMAIN_CARD: _zes_power_domain_t = 1;
pub const ZES_POWER_DOMAIN_PACKAGE: _zes_power_domain_t = 2;
pub const ZES_POWER_DOMAIN_STACK: _zes_power_domain_t = 3;
pub const ZES_POWER_DOMAIN_MEMORY: _zes_power_domain_t = 4;
pub const ZES_POWER_DOMAIN_GPU: _zes_power_domain_t = 5;
pub const ZES_POWER_DOMAIN_FORCE_UINT32: _zes_power_domain_t = 2147483647;
pub type _zes_power_domain_t = ::core::ffi::c_uint;
pub use self::_zes_power_domain_t as zes_power_domain_t;
pub const ZES_POWER_LEVEL_UNKNOWN: _zes_power_level_t = 0;
pub const ZES_POWER_LEVEL_SUSTAINED: _zes_power_level_t = 1;
pub const ZES_POWER_LEVEL_BURST: _zes_power_level_t = 2;
pub const ZES_POWER_LEVEL_PEAK: _zes_power_level_t = 3;
pub const ZES_POWER_LEVEL_INSTANTANEOUS: _zes_power_level_t = 4;
pub const ZES_POWER_LEVEL_FORCE_UINT32: _zes_power_level_t = 2147483647;
pub type _zes_power_level_t = ::core::ffi::c_uint;
pub use self::_zes_power_level_t as zes_power_level_t;
pub const ZES_POWER_SOURCE_ANY: _zes_power_source_t = 0;
pub const ZES_POWER_SOURCE_MAINS: _zes_power_source_t = 1;
pub const ZES_POWER_SOURCE_BATTERY: _zes_power_source_t = 2;
pub const ZES_POWER_SOURCE_FORCE_UINT32: _zes_power_source_t = 2147483647;
pub type _zes_power_source_t = ::core::ffi::c_uint;
pub use self::_zes_power_source_t as zes_power_source_t;
pub const ZES_LIMIT_UNIT_UNKNOWN: _zes_limit_unit_t = 0;
pub const ZES_LIMIT_UNIT_CURRENT: _zes_limit_unit_t = 1;
pub const ZES_LIMIT_UNIT_POWER: _zes_limit_unit_t = 2;
pub const ZES_LIMIT_UNIT_FORCE_UINT32: _zes_limit_unit_t = 2147483647;
pub type _zes_limit_unit_t = ::core::ffi::c_uint;
pub use self::_zes_limit_unit_t as zes_limit_unit_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _zes_power_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub onSubdevice: ze_bool_t,
    pub subdeviceId: u32,
    pub canControl: ze_bool_t,
    pub isEnergyThresholdSupported: ze_bool_t,
    pub defaultLimit: i32,
    pub minLimit: i32,
    pub maxLimit: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_power_properties_t"][::core::mem::size_of::<_zes_power_properties_t>() - 40usize];
    ["Alignment of _zes_power_properties_t"][::core::mem::align_of::<_zes_power_properties_t>() - 8usize];
    ["Offset of field: _zes_power_properties_t::stype"]
        [::core::mem::offset_of!(_zes_power_properties_t, stype) - 0usize];
    ["Offset of field: _zes_power_properties_t::pNext"]
        [::core::mem::offset_of!(_zes_power_properties_t, pNext) - 8usize];
    ["Offset of field: _zes_power_properties_t::onSubdevice"]
        [::core::mem::offset_of!(_zes_power_properties_t, onSubdevice) - 16usize];
    ["Offset of field: _zes_power_properties_t::subdeviceId"]
        [::core::mem::offset_of!(_zes_power_properties_t, subdeviceId) - 20usize];
    ["Offset of field: _zes_power_properties_t::canControl"]
        [::core::mem::offset_of!(_zes_power_properties_t, canControl) - 24usize];
    ["Offset of field: _zes_power_properties_t::isEnergyThresholdSupported"]
        [::core::mem::offset_of!(_zes_power_properties_t, isEnergyThresholdSupported) - 25usize];
    ["Offset of field: _zes_power_properties_t::defaultLimit"]
        [::core::mem::offset_of!(_zes_power_properties_t, defaultLimit) - 28usize];
    ["Offset of field: _zes_power_properties_t::minLimit"]
        [::core::mem::offset_of!(_zes_power_properties_t, minLimit) - 32usize];
    ["Offset of field: _zes_power_properties_t::maxLimit"]
        [::core::mem::offset_of!(_zes_power_properties_t, maxLimit) - 36usize];
};
impl Default for _zes_power_properties_t {
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
pub struct _zes_power_energy_counter_t {
    pub energy: u64,
    pub timestamp: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_power_energy_counter_t"][::core::mem::size_of::<_zes_power_energy_counter_t>() - 16usize];
    ["Alignment of _zes_power_energy_counter_t"][::core::mem::align_of::<_zes_power_energy_counter_t>() - 8usize];
    ["Offset of field: _zes_power_energy_counter_t::energy"]
        [::core::mem::offset_of!(_zes_power_energy_counter_t, energy) - 0usize];
    ["Offset of field: _zes_power_energy_counter_t::timestamp"]
        [::core::mem::offset_of!(_zes_power_energy_counter_t, timestamp) - 8usize];
};
pub const ZES_TEMP_SENSORS_GLOBAL: _zes_temp_sensors_t = 0;
pub const ZES_TEMP_SENSORS_GPU: _zes_temp_sensors_t = 1;
pub const ZES_TEMP_SENSORS_MEMORY: _zes_temp_sensors_t = 2;
pub const ZES_TEMP_SENSORS_GLOBAL_MIN: _zes_temp_sensors_t = 3;
pub const ZES_TEMP_SENSORS_GPU_MIN: _zes_temp_sensors_t = 4;
pub const ZES_TEMP_SENSORS_MEMORY_MIN: _zes_temp_sensors_t = 5;
pub const ZES_TEMP_SENSORS_GPU_BOARD: _zes_temp_sensors_t = 6;
pub const ZES_TEMP_SENSORS_GPU_BOARD_MIN: _zes_temp_sensors_t = 7;
pub const ZES_TEMP_SENSORS_VOLTAGE_REGULATOR: _zes_temp_sensors_t = 8;
pub const ZES_TEMP_SENSORS_FORCE_UINT32: _zes_temp_sensors_t = 2147483647;
pub type _zes_temp_sensors_t = ::core::ffi::c_uint;
pub use self::_zes_temp_sensors_t as zes_temp_sensors_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _zes_temp_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub type_: zes_temp_sensors_t,
    pub onSubdevice: ze_bool_t,
    pub subdeviceId: u32,
    pub maxTemperature: f64,
    pub isCriticalTempSupported: ze_bool_t,
    pub isThreshold1Supported: ze_bool_t,
    pub isThreshold2Supported: ze_bool_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_temp_properties_t"][::core::mem::size_of::<_zes_temp_properties_t>() - 48usize];
    ["Alignment of _zes_temp_properties_t"][::core::mem::align_of::<_zes_temp_properties_t>() - 8usize];
    ["Offset of field: _zes_temp_properties_t::stype"][::core::mem::offset_of!(_zes_temp_properties_t, stype) - 0usize];
    ["Offset of field: _zes_temp_properties_t::pNext"][::core::mem::offset_of!(_zes_temp_properties_t, pNext) - 8usize];
    ["Offset of field: _zes_temp_properties_t::type_"]
        [::core::mem::offset_of!(_zes_temp_properties_t, type_) - 16usize];
    ["Offset of field: _zes_temp_properties_t::onSubdevice"]
        [::core::mem::offset_of!(_zes_temp_properties_t, onSubdevice) - 20usize];
    ["Offset of field: _zes_temp_properties_t::subdeviceId"]
        [::core::mem::offset_of!(_zes_temp_properties_t, subdeviceId) - 24usize];
    ["Offset of field: _zes_temp_properties_t::maxTemperature"]
        [::core::mem::offset_of!(_zes_temp_properties_t, maxTemperature) - 32usize];
    ["Offset of field: _zes_temp_properties_t::isCriticalTempSupported"]
        [::core::mem::offset_of!(_zes_temp_properties_t, isCriticalTempSupported) - 40usize];
    ["Offset of field: _zes_temp_properties_t::isThreshold1Supported"]
        [::core::mem::offset_of!(_zes_temp_properties_t, isThreshold1Supported) - 41usize];
    ["Offset of field: _zes_temp_properties_t::isThreshold2Supported"]
        [::core::mem::offset_of!(_zes_temp_properties_t, isThreshold2Supported) - 42usize];
};
impl Default for _zes_temp_properties_t {
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
pub struct _zes_power_limit_ext_desc_t {
    pub stype: zes_structure_type_t,
    pub pNext: *const ::core::ffi::c_void,
    pub level: zes_power_level_t,
    pub source: zes_power_source_t,
    pub limitUnit: zes_limit_unit_t,
    pub enabledStateLocked: ze_bool_t,
    pub enabled: ze_bool_t,
    pub intervalValueLocked: ze_bool_t,
    pub interval: i32,
    pub limitValueLocked: ze_bool_t,
    pub limit: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_power_limit_ext_desc_t"][::core::mem::size_of::<_zes_power_limit_ext_desc_t>() - 48usize];
    ["Alignment of _zes_power_limit_ext_desc_t"][::core::mem::align_of::<_zes_power_limit_ext_desc_t>() - 8usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::stype"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, stype) - 0usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::pNext"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, pNext) - 8usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::level"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, level) - 16usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::source"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, source) - 20usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::limitUnit"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, limitUnit) - 24usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::enabledStateLocked"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, enabledStateLocked) - 28usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::enabled"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, enabled) - 29usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::intervalValueLocked"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, intervalValueLocked) - 30usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::interval"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, interval) - 32usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::limitValueLocked"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, limitValueLocked) - 36usize];
    ["Offset of field: _zes_power_limit_ext_desc_t::limit"]
        [::core::mem::offset_of!(_zes_power_limit_ext_desc_t, limit) - 40usize];
};
impl Default for _zes_power_limit_ext_desc_t {
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
pub struct _zes_power_ext_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub domain: zes_power_domain_t,
    pub defaultLimit: *mut zes_power_limit_ext_desc_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _zes_power_ext_properties_t"][::core::mem::size_of::<_zes_power_ext_properties_t>() - 32usize];
    ["Alignment of _zes_power_ext_properties_t"][::core::mem::align_of::<_zes_power_ext_properties_t>() - 8usize];
    ["Offset of field: _zes_power_ext_properties_t::stype"]
        [::core::mem::offset_of!(_zes_power_ext_properties_t, stype) - 0usize];
    ["Offset of field: _zes_power_ext_properties_t::pNext"]
        [::core::mem::offset_of!(_zes_power_ext_properties_t, pNext) - 8usize];
    ["Offset of field: _zes_power_ext_properties_t::domain"]
        [::core::mem::offset_of!(_zes_power_ext_properties_t, domain) - 16usize];
    ["Offset of field: _zes_power_ext_properties_t::defaultLimit"]
        [::core::mem::offset_of!(_zes_power_ext_properties_t, defaultLimit) - 24usize];
};
impl Default for _zes_power_ext_properties_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub struct LevelZero {
    __library: ::libloading::Library,
    pub zeInit: Result<unsafe extern "C" fn(flags: ze_init_flags_t) -> ze_result_t, ::libloading::Error>,
    pub zeDriverGet: Result<
        unsafe extern "C" fn(pCount: *mut u32, phDrivers: *mut ze_driver_handle_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zeDriverGetApiVersion: Result<
        unsafe extern "C" fn(hDriver: ze_driver_handle_t, version: *mut ze_api_version_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zeDriverGetProperties: Result<
        unsafe extern "C" fn(
            hDriver: ze_driver_handle_t,
            pDriverProperties: *mut ze_driver_properties_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zeDeviceGet: Result<
        unsafe extern "C" fn(
            hDriver: ze_driver_handle_t,
            pCount: *mut u32,
            phDevices: *mut ze_device_handle_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zeDeviceGetProperties: Result<
        unsafe extern "C" fn(
            hDevice: ze_device_handle_t,
            pDeviceProperties: *mut ze_device_properties_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zeDeviceGetMemoryProperties: Result<
        unsafe extern "C" fn(
            hDevice: ze_device_handle_t,
            pCount: *mut u32,
            pMemProperties: *mut ze_device_memory_properties_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zeDevicePciGetPropertiesExt: Result<
        unsafe extern "C" fn(hDevice: ze_device_handle_t, pPciProperties: *mut ze_pci_ext_properties_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesInit: Result<unsafe extern "C" fn(flags: zes_init_flags_t) -> ze_result_t, ::libloading::Error>,
    pub zesDriverGet: Result<
        unsafe extern "C" fn(pCount: *mut u32, phDrivers: *mut zes_driver_handle_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDeviceGet: Result<
        unsafe extern "C" fn(
            hDriver: zes_driver_handle_t,
            pCount: *mut u32,
            phDevices: *mut zes_device_handle_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDevicePciGetProperties: Result<
        unsafe extern "C" fn(hDevice: zes_device_handle_t, pProperties: *mut zes_pci_properties_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDevicePciGetState: Result<
        unsafe extern "C" fn(hDevice: zes_device_handle_t, pState: *mut zes_pci_state_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDeviceGetEccState: Result<
        unsafe extern "C" fn(hDevice: zes_device_handle_t, pState: *mut zes_device_ecc_properties_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDeviceEnumMemoryModules: Result<
        unsafe extern "C" fn(
            hDevice: zes_device_handle_t,
            pCount: *mut u32,
            phMemory: *mut zes_mem_handle_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesMemoryGetProperties: Result<
        unsafe extern "C" fn(hMemory: zes_mem_handle_t, pProperties: *mut zes_mem_properties_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesMemoryGetState: Result<
        unsafe extern "C" fn(hMemory: zes_mem_handle_t, pState: *mut zes_mem_state_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesMemoryGetBandwidth: Result<
        unsafe extern "C" fn(hMemory: zes_mem_handle_t, pBandwidth: *mut zes_mem_bandwidth_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDeviceEnumPowerDomains: Result<
        unsafe extern "C" fn(
            hDevice: zes_device_handle_t,
            pCount: *mut u32,
            phPower: *mut zes_pwr_handle_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesPowerGetProperties: Result<
        unsafe extern "C" fn(hPower: zes_pwr_handle_t, pProperties: *mut zes_power_properties_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesPowerGetEnergyCounter: Result<
        unsafe extern "C" fn(hPower: zes_pwr_handle_t, pEnergy: *mut zes_power_energy_counter_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesDeviceEnumTemperatureSensors: Result<
        unsafe extern "C" fn(
            hDevice: zes_device_handle_t,
            pCount: *mut u32,
            phTemperature: *mut zes_temp_handle_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesTemperatureGetProperties: Result<
        unsafe extern "C" fn(hTemperature: zes_temp_handle_t, pProperties: *mut zes_temp_properties_t) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesTemperatureGetState: Result<
        unsafe extern "C" fn(hTemperature: zes_temp_handle_t, pTemperature: *mut f64) -> ze_result_t,
        ::libloading::Error,
    >,
    pub zesPowerGetLimitsExt: Result<
        unsafe extern "C" fn(
            hPower: zes_pwr_handle_t,
            pCount: *mut u32,
            pSustained: *mut zes_power_limit_ext_desc_t,
        ) -> ze_result_t,
        ::libloading::Error,
    >,
}
impl LevelZero {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let zeInit = unsafe { __library.get(b"zeInit\0") }.map(|sym| *sym);
        let zeDriverGet = unsafe { __library.get(b"zeDriverGet\0") }.map(|sym| *sym);
        let zeDriverGetApiVersion = unsafe { __library.get(b"zeDriverGetApiVersion\0") }.map(|sym| *sym);
        let zeDriverGetProperties = unsafe { __library.get(b"zeDriverGetProperties\0") }.map(|sym| *sym);
        let zeDeviceGet = unsafe { __library.get(b"zeDeviceGet\0") }.map(|sym| *sym);
        let zeDeviceGetProperties = unsafe { __library.get(b"zeDeviceGetProperties\0") }.map(|sym| *sym);
        let zeDeviceGetMemoryProperties = unsafe { __library.get(b"zeDeviceGetMemoryProperties\0") }.map(|sym| *sym);
        let zeDevicePciGetPropertiesExt = unsafe { __library.get(b"zeDevicePciGetPropertiesExt\0") }.map(|sym| *sym);
        let zesInit = unsafe { __library.get(b"zesInit\0") }.map(|sym| *sym);
        let zesDriverGet = unsafe { __library.get(b"zesDriverGet\0") }.map(|sym| *sym);
        let zesDeviceGet = unsafe { __library.get(b"zesDeviceGet\0") }.map(|sym| *sym);
        let zesDevicePciGetProperties = unsafe { __library.get(b"zesDevicePciGetProperties\0") }.map(|sym| *sym);
        let zesDevicePciGetState = unsafe { __library.get(b"zesDevicePciGetState\0") }.map(|sym| *sym);
        let zesDeviceGetEccState = unsafe { __library.get(b"zesDeviceGetEccState\0") }.map(|sym| *sym);
        let zesDeviceEnumMemoryModules = unsafe { __library.get(b"zesDeviceEnumMemoryModules\0") }.map(|sym| *sym);
        let zesMemoryGetProperties = unsafe { __library.get(b"zesMemoryGetProperties\0") }.map(|sym| *sym);
        let zesMemoryGetState = unsafe { __library.get(b"zesMemoryGetState\0") }.map(|sym| *sym);
        let zesMemoryGetBandwidth = unsafe { __library.get(b"zesMemoryGetBandwidth\0") }.map(|sym| *sym);
        let zesDeviceEnumPowerDomains = unsafe { __library.get(b"zesDeviceEnumPowerDomains\0") }.map(|sym| *sym);
        let zesPowerGetProperties = unsafe { __library.get(b"zesPowerGetProperties\0") }.map(|sym| *sym);
        let zesPowerGetEnergyCounter = unsafe { __library.get(b"zesPowerGetEnergyCounter\0") }.map(|sym| *sym);
        let zesDeviceEnumTemperatureSensors =
            unsafe { __library.get(b"zesDeviceEnumTemperatureSensors\0") }.map(|sym| *sym);
        let zesTemperatureGetProperties = unsafe { __library.get(b"zesTemperatureGetProperties\0") }.map(|sym| *sym);
        let zesTemperatureGetState = unsafe { __library.get(b"zesTemperatureGetState\0") }.map(|sym| *sym);
        let zesPowerGetLimitsExt = unsafe { __library.get(b"zesPowerGetLimitsExt\0") }.map(|sym| *sym);
        Ok(LevelZero {
            __library,
            zeInit,
            zeDriverGet,
            zeDriverGetApiVersion,
            zeDriverGetProperties,
            zeDeviceGet,
            zeDeviceGetProperties,
            zeDeviceGetMemoryProperties,
            zeDevicePciGetPropertiesExt,
            zesInit,
            zesDriverGet,
            zesDeviceGet,
            zesDevicePciGetProperties,
            zesDevicePciGetState,
            zesDeviceGetEccState,
            zesDeviceEnumMemoryModules,
            zesMemoryGetProperties,
            zesMemoryGetState,
            zesMemoryGetBandwidth,
            zesDeviceEnumPowerDomains,
            zesPowerGetProperties,
            zesPowerGetEnergyCounter,
            zesDeviceEnumTemperatureSensors,
            zesTemperatureGetProperties,
            zesTemperatureGetState,
            zesPowerGetLimitsExt,
        })
    }
    pub unsafe fn zeInit(&self, flags: ze_init_flags_t) -> ze_result_t {
        unsafe { (self.zeInit.as_ref().expect("Expected function, got error."))(flags) }
    }
    pub unsafe fn zeDriverGet(&self, pCount: *mut u32, phDrivers: *mut ze_driver_handle_t) -> ze_result_t {
        unsafe { (self.zeDriverGet.as_ref().expect("Expected function, got error."))(pCount, phDrivers) }
    }
    pub unsafe fn zeDriverGetApiVersion(
        &self,
        hDriver: ze_driver_handle_t,
        version: *mut ze_api_version_t,
    ) -> ze_result_t {
        unsafe { (self.zeDriverGetApiVersion.as_ref().expect("Expected function, got error."))(hDriver, version) }
    }
    pub unsafe fn zeDriverGetProperties(
        &self,
        hDriver: ze_driver_handle_t,
        pDriverProperties: *mut ze_driver_properties_t,
    ) -> ze_result_t {
        unsafe {
            (self.zeDriverGetProperties.as_ref().expect("Expected function, got error."))(hDriver, pDriverProperties)
        }
    }
    pub unsafe fn zeDeviceGet(
        &self,
        hDriver: ze_driver_handle_t,
        pCount: *mut u32,
        phDevices: *mut ze_device_handle_t,
    ) -> ze_result_t {
        unsafe { (self.zeDeviceGet.as_ref().expect("Expected function, got error."))(hDriver, pCount, phDevices) }
    }
    pub unsafe fn zeDeviceGetProperties(
        &self,
        hDevice: ze_device_handle_t,
        pDeviceProperties: *mut ze_device_properties_t,
    ) -> ze_result_t {
        unsafe {
            (self.zeDeviceGetProperties.as_ref().expect("Expected function, got error."))(hDevice, pDeviceProperties)
        }
    }
    pub unsafe fn zeDeviceGetMemoryProperties(
        &self,
        hDevice: ze_device_handle_t,
        pCount: *mut u32,
        pMemProperties: *mut ze_device_memory_properties_t,
    ) -> ze_result_t {
        unsafe {
            (self.zeDeviceGetMemoryProperties.as_ref().expect("Expected function, got error."))(
                hDevice,
                pCount,
                pMemProperties,
            )
        }
    }
    pub unsafe fn zeDevicePciGetPropertiesExt(
        &self,
        hDevice: ze_device_handle_t,
        pPciProperties: *mut ze_pci_ext_properties_t,
    ) -> ze_result_t {
        unsafe {
            (self.zeDevicePciGetPropertiesExt.as_ref().expect("Expected function, got error."))(hDevice, pPciProperties)
        }
    }
    pub unsafe fn zesInit(&self, flags: zes_init_flags_t) -> ze_result_t {
        unsafe { (self.zesInit.as_ref().expect("Expected function, got error."))(flags) }
    }
    pub unsafe fn zesDriverGet(&self, pCount: *mut u32, phDrivers: *mut zes_driver_handle_t) -> ze_result_t {
        unsafe { (self.zesDriverGet.as_ref().expect("Expected function, got error."))(pCount, phDrivers) }
    }
    pub unsafe fn zesDeviceGet(
        &self,
        hDriver: zes_driver_handle_t,
        pCount: *mut u32,
        phDevices: *mut zes_device_handle_t,
    ) -> ze_result_t {
        unsafe { (self.zesDeviceGet.as_ref().expect("Expected function, got error."))(hDriver, pCount, phDevices) }
    }
    pub unsafe fn zesDevicePciGetProperties(
        &self,
        hDevice: zes_device_handle_t,
        pProperties: *mut zes_pci_properties_t,
    ) -> ze_result_t {
        unsafe {
            (self.zesDevicePciGetProperties.as_ref().expect("Expected function, got error."))(hDevice, pProperties)
        }
    }
    pub unsafe fn zesDevicePciGetState(
        &self,
        hDevice: zes_device_handle_t,
        pState: *mut zes_pci_state_t,
    ) -> ze_result_t {
        unsafe { (self.zesDevicePciGetState.as_ref().expect("Expected function, got error."))(hDevice, pState) }
    }
    pub unsafe fn zesDeviceGetEccState(
        &self,
        hDevice: zes_device_handle_t,
        pState: *mut zes_device_ecc_properties_t,
    ) -> ze_result_t {
        unsafe { (self.zesDeviceGetEccState.as_ref().expect("Expected function, got error."))(hDevice, pState) }
    }
    pub unsafe fn zesDeviceEnumMemoryModules(
        &self,
        hDevice: zes_device_handle_t,
        pCount: *mut u32,
        phMemory: *mut zes_mem_handle_t,
    ) -> ze_result_t {
        unsafe {
            (self.zesDeviceEnumMemoryModules.as_ref().expect("Expected function, got error."))(
                hDevice, pCount, phMemory,
            )
        }
    }
    pub unsafe fn zesMemoryGetProperties(
        &self,
        hMemory: zes_mem_handle_t,
        pProperties: *mut zes_mem_properties_t,
    ) -> ze_result_t {
        unsafe { (self.zesMemoryGetProperties.as_ref().expect("Expected function, got error."))(hMemory, pProperties) }
    }
    pub unsafe fn zesMemoryGetState(&self, hMemory: zes_mem_handle_t, pState: *mut zes_mem_state_t) -> ze_result_t {
        unsafe { (self.zesMemoryGetState.as_ref().expect("Expected function, got error."))(hMemory, pState) }
    }
    pub unsafe fn zesMemoryGetBandwidth(
        &self,
        hMemory: zes_mem_handle_t,
        pBandwidth: *mut zes_mem_bandwidth_t,
    ) -> ze_result_t {
        unsafe { (self.zesMemoryGetBandwidth.as_ref().expect("Expected function, got error."))(hMemory, pBandwidth) }
    }
    pub unsafe fn zesDeviceEnumPowerDomains(
        &self,
        hDevice: zes_device_handle_t,
        pCount: *mut u32,
        phPower: *mut zes_pwr_handle_t,
    ) -> ze_result_t {
        unsafe {
            (self.zesDeviceEnumPowerDomains.as_ref().expect("Expected function, got error."))(hDevice, pCount, phPower)
        }
    }
    pub unsafe fn zesPowerGetProperties(
        &self,
        hPower: zes_pwr_handle_t,
        pProperties: *mut zes_power_properties_t,
    ) -> ze_result_t {
        unsafe { (self.zesPowerGetProperties.as_ref().expect("Expected function, got error."))(hPower, pProperties) }
    }
    pub unsafe fn zesPowerGetEnergyCounter(
        &self,
        hPower: zes_pwr_handle_t,
        pEnergy: *mut zes_power_energy_counter_t,
    ) -> ze_result_t {
        unsafe { (self.zesPowerGetEnergyCounter.as_ref().expect("Expected function, got error."))(hPower, pEnergy) }
    }
    pub unsafe fn zesDeviceEnumTemperatureSensors(
        &self,
        hDevice: zes_device_handle_t,
        pCount: *mut u32,
        phTemperature: *mut zes_temp_handle_t,
    ) -> ze_result_t {
        unsafe {
            (self.zesDeviceEnumTemperatureSensors.as_ref().expect("Expected function, got error."))(
                hDevice,
                pCount,
                phTemperature,
            )
        }
    }
    pub unsafe fn zesTemperatureGetProperties(
        &self,
        hTemperature: zes_temp_handle_t,
        pProperties: *mut zes_temp_properties_t,
    ) -> ze_result_t {
        unsafe {
            (self.zesTemperatureGetProperties.as_ref().expect("Expected function, got error."))(
                hTemperature,
                pProperties,
            )
        }
    }
    pub unsafe fn zesTemperatureGetState(
        &self,
        hTemperature: zes_temp_handle_t,
        pTemperature: *mut f64,
    ) -> ze_result_t {
        unsafe {
            (self.zesTemperatureGetState.as_ref().expect("Expected function, got error."))(hTemperature, pTemperature)
        }
    }
    pub unsafe fn zesPowerGetLimitsExt(
        &self,
        hPower: zes_pwr_handle_t,
        pCount: *mut u32,
        pSustained: *mut zes_power_limit_ext_desc_t,
    ) -> ze_result_t {
        unsafe {
            (self.zesPowerGetLimitsExt.as_ref().expect("Expected function, got error."))(hPower, pCount, pSustained)
        }
    }
}
