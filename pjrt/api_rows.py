"""PJRT's C API as data: its structures and the order of its function table, of minor version 104 and those before.

A row is a structure. A field is a pointer, or has a type behind a colon: z size_t, i int, q int64_t, b bool, U a union
of eight bytes, or another structure. `@N`: since minor version N; without it, since 81 or earlier. Fields of rows in
ARGUMENTS follow struct_size and extension_start, and the structure is called PJRT_<name>_Args.
"""

MAJOR, MINOR = 0, 104

ARGUMENTS = """\
Error_Destroy: error
Error_Message: error message message_size:z
Error_GetCode: error code:i
Plugin_Initialize:
Plugin_Attributes: attributes num_attributes:z
Event_Destroy: event
Event_IsReady: event is_ready:b
Event_Error: event
Event_Await: event
Event_OnReady: event callback user_arg
Client_Create: create_options num_options:z kv_get_callback kv_get_user_arg kv_put_callback kv_put_user_arg client
    kv_try_get_callback@61 kv_try_get_user_arg@61
Client_Destroy: client
Client_PlatformName: client platform_name platform_name_size:z
Client_ProcessIndex: client process_index:i
Client_PlatformVersion: client platform_version platform_version_size:z
Client_TopologyDescription: client topology
Client_Devices: client devices num_devices:z
Client_AddressableDevices: client addressable_devices num_addressable_devices:z
Client_LookupDevice: client id:i device
Client_LookupAddressableDevice: client local_hardware_id:i addressable_device
Client_UpdateGlobalProcessInfo: client process_infos num_process_infos:z
Client_AddressableMemories: client addressable_memories num_addressable_memories:z
Client_Compile: client program compile_options compile_options_size:z executable
Client_DefaultDeviceAssignment: client num_replicas:i num_partitions:i default_assignment_size:z default_assignment
Client_DmaMap: client data size:z
Client_DmaUnmap: client data
AsyncHostToDeviceTransferManager_Destroy: transfer_manager
AsyncHostToDeviceTransferManager_TransferData: transfer_manager buffer_index:i data offset:q transfer_size:q
    is_last_transfer:b done_with_h2d_transfer
AsyncHostToDeviceTransferManager_RetrieveBuffer: transfer_manager buffer_index:i buffer_out
AsyncHostToDeviceTransferManager_Device: transfer_manager device_out
AsyncHostToDeviceTransferManager_BufferCount: transfer_manager buffer_count:z
AsyncHostToDeviceTransferManager_BufferSize: transfer_manager buffer_index:i buffer_size:z
AsyncHostToDeviceTransferManager_SetBufferError: transfer_manager buffer_index:i error_code:i error_message
    error_message_size:z
AsyncHostToDeviceTransferManager_AddMetadata: transfer_manager transfer_metadata num_metadata:z
Client_CreateUninitializedBuffer: client shape_dims shape_num_dims:z shape_element_type:i shape_layout device memory
    buffer
Client_CreateAliasBuffer: client memory shape_dims shape_num_dims:z shape_element_type:i shape_layout alias_buffer
    fulfill_alias_buffer_cb
Client_FulfillAliasBuffer: client buffer status_code:i error_message error_message_size:z fulfill_alias_buffer_cb
Client_BufferFromHostBuffer: client data type:i dims num_dims:z byte_strides num_byte_strides:z
    host_buffer_semantics:i device memory device_layout done_with_host_buffer buffer
Client_CreateViewOfDeviceBuffer: client device_buffer_ptr dims num_dims:z element_type:i layout device
    on_delete_callback on_delete_callback_arg stream:z buffer memory@66
Client_CreateBuffersForAsyncHostToDevice: client shape_specs num_shape_specs:z device_layouts num_device_layouts:z
    memory transfer_manager
DeviceDescription_Id: device_description id:i
DeviceDescription_ProcessIndex: device_description process_index:i
DeviceDescription_Attributes: device_description num_attributes:z attributes
DeviceDescription_Kind: device_description device_kind device_kind_size:z
DeviceDescription_DebugString: device_description debug_string debug_string_size:z
DeviceDescription_ToString: device_description to_string to_string_size:z
Device_GetDescription: device device_description
Device_IsAddressable: device is_addressable:b
Device_LocalHardwareId: device local_hardware_id:i
Device_AddressableMemories: device memories num_memories:z
Device_DefaultMemory: device memory
Device_MemoryStats: device bytes_in_use:q peak_bytes_in_use:q peak_bytes_in_use_is_set:b num_allocs:q
    num_allocs_is_set:b largest_alloc_size:q largest_alloc_size_is_set:b bytes_limit:q bytes_limit_is_set:b
    bytes_reserved:q bytes_reserved_is_set:b peak_bytes_reserved:q peak_bytes_reserved_is_set:b
    bytes_reservable_limit:q bytes_reservable_limit_is_set:b largest_free_block_bytes:q
    largest_free_block_bytes_is_set:b pool_bytes:q pool_bytes_is_set:b peak_pool_bytes:q peak_pool_bytes_is_set:b
Memory_Id: memory id:i
Memory_Kind: memory kind kind_size:z
Memory_Kind_Id: memory kind_id:i
Memory_DebugString: memory debug_string debug_string_size:z
Memory_ToString: memory to_string to_string_size:z
Memory_AddressableByDevices: memory devices num_devices:z
ExecuteContext_Create: context
ExecuteContext_Destroy: context
Executable_Destroy: executable
LoadedExecutable_Destroy: executable
LoadedExecutable_GetExecutable: loaded_executable executable
LoadedExecutable_GetDeviceAssignment: executable serialized_bytes serialized_bytes_size:z serialized_device_assignment
    serialized_device_assignment_deleter
Executable_Name: executable executable_name executable_name_size:z
Executable_NumReplicas: executable num_replicas:z
Executable_NumPartitions: executable num_partitions:z
LoadedExecutable_AddressableDevices: executable addressable_devices num_addressable_devices:z
Executable_OptimizedProgram: executable program
LoadedExecutable_Delete: executable
LoadedExecutable_IsDeleted: executable is_deleted:b
LoadedExecutable_Execute: executable options argument_lists num_devices:z num_args:z output_lists
    device_complete_events execute_device
Executable_NumOutputs: executable num_outputs:z
Executable_SizeOfGeneratedCodeInBytes: executable size_in_bytes:q
Executable_Fingerprint: executable executable_fingerprint executable_fingerprint_size:z
Executable_GetCostAnalysis: executable num_properties:z properties
Executable_GetCompiledMemoryStats: executable generated_code_size_in_bytes:q argument_size_in_bytes:q
    output_size_in_bytes:q alias_size_in_bytes:q temp_size_in_bytes:q host_generated_code_size_in_bytes:q
    host_argument_size_in_bytes:q host_output_size_in_bytes:q host_alias_size_in_bytes:q host_temp_size_in_bytes:q
    peak_memory_in_bytes:q@72 total_size_in_bytes:q@90 total_allocation_bytes:q@104 indefinite_allocations:q@104
    peak_unpadded_heap_bytes:q@104
Executable_OutputElementTypes: executable output_types num_output_types:z
Executable_OutputDimensions: executable num_outputs:z dims dim_sizes
Executable_OutputMemoryKinds: executable num_outputs:z memory_kinds memory_kind_sizes
Executable_Serialize: executable serialized_bytes serialized_bytes_size:z serialized_executable
    serialized_executable_deleter
Executable_DeserializeAndLoad: client serialized_executable serialized_executable_size:z loaded_executable
    overridden_serialized_compile_options@71 overridden_serialized_compile_options_size:z@71
LoadedExecutable_Fingerprint: executable executable_fingerprint executable_fingerprint_size:z
Buffer_Destroy: buffer
Buffer_ElementType: buffer type:i
Buffer_Dimensions: buffer dims num_dims:z
Buffer_UnpaddedDimensions: buffer unpadded_dims num_dims:z
Buffer_DynamicDimensionIndices: buffer dynamic_dim_indices num_dynamic_dims:z
Buffer_GetMemoryLayout: buffer layout:Buffer_MemoryLayout
Buffer_ToHostBuffer: src host_layout dst dst_size:z event
Buffer_OnDeviceSizeInBytes: buffer on_device_size_in_bytes:z
Buffer_Delete: buffer
Buffer_IsDeleted: buffer is_deleted:b
Buffer_CopyRawToHost: buffer dst offset:q transfer_size:q event
Buffer_CopyToDevice: buffer dst_device dst_buffer
Buffer_CopyToMemory: buffer dst_memory dst_buffer
Buffer_IsOnCpu: buffer is_on_cpu:b
Buffer_Device: buffer device
Buffer_Memory: buffer memory
Buffer_ReadyEvent: buffer event
Buffer_UnsafePointer: buffer buffer_pointer:z
Buffer_IncreaseExternalReferenceCount: buffer
Buffer_DecreaseExternalReferenceCount: buffer
Buffer_OpaqueDeviceMemoryDataPointer: buffer device_memory_ptr
CopyToDeviceStream_Destroy: stream
CopyToDeviceStream_AddChunk: stream chunk transfer_complete
CopyToDeviceStream_TotalBytes: stream total_bytes:q
CopyToDeviceStream_GranuleSize: stream granule_size_in_bytes:q
CopyToDeviceStream_CurrentBytes: stream current_bytes:q
TopologyDescription_Create: topology_name topology_name_size:z create_options num_options:z topology
TopologyDescription_Destroy: topology
TopologyDescription_PlatformVersion: topology platform_version platform_version_size:z
TopologyDescription_PlatformName: topology platform_name platform_name_size:z
TopologyDescription_GetDeviceDescriptions: topology descriptions num_descriptions:z
TopologyDescription_Serialize: topology serialized_bytes serialized_bytes_size:z serialized_topology
    serialized_topology_deleter
TopologyDescription_Deserialize: serialized_topology serialized_topology_size:z topology
TopologyDescription_Attributes: topology attributes num_attributes:z
Compile: topology program compile_options compile_options_size:z client executable
Client_CreateErrorBuffer@82: client error_code:i error_message error_message_size:z shape_dims shape_num_dims:z
    shape_element_type:i shape_layout memory buffer payload@103 num_payload:z@103
AsyncHostToDeviceTransferManager_TransferLiteral@83: transfer_manager buffer_index:i data shape_dims shape_num_dims:z
    shape_element_type:i shape_layout done_with_h2d_transfer
Buffer_CopyRawToHostFuture@84: buffer offset:q transfer_size:q event callback_data future_ready_callback
Device_PoisonExecution@85: device launch_id:i error_code:i error_message error_message_size:z poisoned:b payload@100
    num_payload:z@100
Device_CreateAsyncTrackingEvent@86: device description description_size:z event
AsyncTrackingEvent_Destroy@86: event
Executable_GetCompileOptions@87: executable serialized_bytes serialized_bytes_size:z serialized_compile_options
    serialized_compile_options_deleter
Buffer_DonateWithControlDependency@88: buffer callback_data dependency_ready_callback out_buffer
Event_Create@89: event
Event_Set@89: event error_code:i error_message error_message_size:z
Device_GetAttributes@92: device attributes num_attributes:z device_attributes attributes_deleter
Client_Load@95: client executable compile_options compile_options_size:z loaded_executable
LoadedExecutable_AddressableDeviceLogicalIds@96: executable addressable_device_logical_ids
    num_addressable_device_logical_ids:z
Buffer_Bitcast@98: buffer element_type:i dims num_dims:z device_layout out_buffer
Error_ForEachPayload@99: error visitor user_arg
TopologyDescription_Fingerprint@101: topology fingerprint:z
Executable_ParameterMemoryKinds@102: executable num_parameters:z memory_kinds memory_kind_sizes
"""

LAYOUTS = """\
Layouts_MemoryLayout_Destroy: layout
Layouts_MemoryLayout_Serialize: layout serialized_bytes serialized_bytes_size:z serialized_layout
    serialized_layout_deleter
Layouts_PJRT_Client_GetDefaultLayout: client type:i dims num_dims:z layout
Layouts_PJRT_Buffer_MemoryLayout: buffer layout
Layouts_PJRT_Topology_GetDefaultLayout: topology_description type:i dims num_dims:z layout
Layouts_PJRT_Executable_GetOutputLayouts: executable num_outputs:z layouts
Layouts_PJRT_Executable_GetParameterLayouts: executable num_parameters:z layouts
"""
"""Arguments of the functions of the Layouts extension, in the order of its table."""

STRUCTURES = """\
Extension_Base: struct_size:z type:i next
Api_Version: struct_size:z extension_start major_version:i minor_version:i
NamedValue: struct_size:z extension_start name name_size:z type:i value:U value_size:z
KeyValueGetCallback_Args: struct_size:z extension_start key key_size:z timeout_in_ms:i callback_error user_arg value
    value_size:z value_deleter_callback
KeyValueTryGetCallback_Args: struct_size:z extension_start key key_size:z callback_error user_arg value value_size:z
    value_deleter_callback
KeyValuePutCallback_Args: struct_size:z extension_start key key_size:z value value_size:z callback_error user_arg
ProcessInfo: struct_size:z task_id:i incarnation_id:q state:i error_code:i error_message error_message_size:z
Program: struct_size:z extension_start code code_size:z format format_size:z
Buffer_MemoryLayout_Tiled: struct_size:z extension_start minor_to_major minor_to_major_size:z tile_dims tile_dim_sizes
    num_tiles:z
Buffer_MemoryLayout_Strides: struct_size:z extension_start byte_strides num_byte_strides:z
Buffer_MemoryLayout: struct_size:z extension_start tiled:Buffer_MemoryLayout_Tiled type:i
ShapeSpec: struct_size:z extension_start dims num_dims:z element_type:i
Chunk: data size:z deleter deleter_arg
SendCallbackInfo: channel_id:q user_arg send_callback
RecvCallbackInfo: channel_id:q user_arg recv_callback
ExecuteOptions: struct_size:z extension_start send_callbacks recv_callbacks num_send_ops:z num_recv_ops:z launch_id:i
    non_donatable_input_indices@39 num_non_donatable_input_indices:z@39 context@64 call_location@76 num_tasks:z@78
    task_ids@78 incarnation_ids@78 multi_slice_config@97
LogicalDeviceIds: replica:i partition:i
"""

FUNCTIONS = """\
Error_Destroy Error_Message Error_GetCode Plugin_Initialize Plugin_Attributes Event_Destroy Event_IsReady Event_Error
Event_Await Event_OnReady Client_Create Client_Destroy Client_PlatformName Client_ProcessIndex
Client_PlatformVersion Client_Devices Client_AddressableDevices Client_LookupDevice Client_LookupAddressableDevice
Client_AddressableMemories Client_Compile Client_DefaultDeviceAssignment Client_BufferFromHostBuffer
DeviceDescription_Id DeviceDescription_ProcessIndex DeviceDescription_Attributes DeviceDescription_Kind
DeviceDescription_DebugString DeviceDescription_ToString Device_GetDescription Device_IsAddressable
Device_LocalHardwareId Device_AddressableMemories Device_DefaultMemory Device_MemoryStats Memory_Id Memory_Kind
Memory_DebugString Memory_ToString Memory_AddressableByDevices Executable_Destroy Executable_Name
Executable_NumReplicas Executable_NumPartitions Executable_NumOutputs Executable_SizeOfGeneratedCodeInBytes
Executable_GetCostAnalysis Executable_OutputMemoryKinds Executable_OptimizedProgram Executable_Serialize
LoadedExecutable_Destroy LoadedExecutable_GetExecutable LoadedExecutable_AddressableDevices
LoadedExecutable_Delete LoadedExecutable_IsDeleted LoadedExecutable_Execute Executable_DeserializeAndLoad
LoadedExecutable_Fingerprint Buffer_Destroy Buffer_ElementType Buffer_Dimensions Buffer_UnpaddedDimensions
Buffer_DynamicDimensionIndices Buffer_GetMemoryLayout Buffer_OnDeviceSizeInBytes Buffer_Device Buffer_Memory
Buffer_Delete Buffer_IsDeleted Buffer_CopyToDevice Buffer_ToHostBuffer Buffer_IsOnCpu Buffer_ReadyEvent
Buffer_UnsafePointer Buffer_IncreaseExternalReferenceCount Buffer_DecreaseExternalReferenceCount
Buffer_OpaqueDeviceMemoryDataPointer CopyToDeviceStream_Destroy CopyToDeviceStream_AddChunk
CopyToDeviceStream_TotalBytes CopyToDeviceStream_GranuleSize CopyToDeviceStream_CurrentBytes
TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_PlatformName
TopologyDescription_PlatformVersion TopologyDescription_GetDeviceDescriptions TopologyDescription_Serialize
TopologyDescription_Attributes Compile Executable_OutputElementTypes Executable_OutputDimensions
Buffer_CopyToMemory Client_CreateViewOfDeviceBuffer Executable_Fingerprint Client_TopologyDescription
Executable_GetCompiledMemoryStats Memory_Kind_Id ExecuteContext_Create ExecuteContext_Destroy Buffer_CopyRawToHost
AsyncHostToDeviceTransferManager_Destroy AsyncHostToDeviceTransferManager_TransferData
Client_CreateBuffersForAsyncHostToDevice AsyncHostToDeviceTransferManager_RetrieveBuffer
AsyncHostToDeviceTransferManager_Device AsyncHostToDeviceTransferManager_BufferCount
AsyncHostToDeviceTransferManager_BufferSize AsyncHostToDeviceTransferManager_SetBufferError
AsyncHostToDeviceTransferManager_AddMetadata Client_DmaMap Client_DmaUnmap Client_CreateUninitializedBuffer
Client_UpdateGlobalProcessInfo TopologyDescription_Deserialize Client_CreateAliasBuffer Client_FulfillAliasBuffer
LoadedExecutable_GetDeviceAssignment Client_CreateErrorBuffer AsyncHostToDeviceTransferManager_TransferLiteral
Buffer_CopyRawToHostFuture Device_PoisonExecution Device_CreateAsyncTrackingEvent AsyncTrackingEvent_Destroy
Executable_GetCompileOptions Buffer_DonateWithControlDependency Event_Create Event_Set Device_GetAttributes
Client_Load LoadedExecutable_AddressableDeviceLogicalIds Buffer_Bitcast Error_ForEachPayload
TopologyDescription_Fingerprint Executable_ParameterMemoryKinds
"""
"""The function table, in order, behind its size, the first extension and the version."""

ERROR_CODES = """\
OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED
FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED
"""

BUFFER_TYPES = """\
INVALID PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128 F8E5M2 F8E4M3FN F8E4M3B11FNUZ F8E5M2FNUZ
F8E4M3FNUZ S4 U4 TOKEN S2 U2 F8E4M3 F8E3M4 F8E8M0FNU F4E2M1FN S1 U1
"""
"""In the order of their numbers, as all words of this file."""

NAMED_VALUES = "STRING INT64 INT64_LIST FLOAT BOOL"
HOST_BUFFER_SEMANTICS = "ONLY_DURING_CALL UNTIL_TRANSFER_COMPLETES IMMUTABLE_ZERO_COPY MUTABLE_ZERO_COPY"
LAYOUT_TYPES = "TILED STRIDES"
EXTENSION_LAYOUTS = 4
