"""XLA's proto messages (xla/service/hlo.proto, xla/xla_data.proto) as tables, and the classes made from them.

Built at import through protobuf's descriptor pool: no protoc, nothing generated to keep in step. A test compares every
row with the descriptors that jaxlib carries.

A field reads `name:number=type`: i int64, j int32, u uint64, v uint32, f float, d double, t bool, s string, b bytes, or
the name of a message or enum; `*` repeated, `k>v` a map, `?` optional, `@name` a member of a oneof.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MESSAGES: dict[str, str] = {
    "HloSnapshot": "hlo:1=HloProto arguments:2=*LiteralProto result:3=LiteralProto execution_platform:4=s",
    "HloProto": "hlo_module:1=HloModuleProto buffer_assignment:3=BufferAssignmentProto",
    "HloModuleProto": (
        "name:1=s entry_computation_name:2=s computations:3=*HloComputationProto "
        "host_program_shape:4=ProgramShapeProto id:5=i entry_computation_id:6=i schedule:7=HloScheduleProto "
        "input_output_alias:8=HloInputOutputAliasProto cross_program_prefetches:10=*CrossProgramPrefetch "
        "is_dynamic:11=t spmd_output_sharding:12=OpSharding profile_info:13=*HloModuleProto.ProfileInfo "
        "spmd_parameters_shardings:14=*OpSharding device_assignment:15=DeviceAssignmentProto "
        "use_auto_spmd_partitioning:16=t stack_frame_index:17=StackFrameIndexProto "
        "buffer_donor:18=HloBufferDonorProto frontend_attributes:19=FrontendAttributes "
        "original_value_recovery_table:20=OriginalValueRecoveryTableProto device_type:21=s payloads:22=*b "
        "pjrt_id:23=i?"
    ),
    "HloComputationProto": (
        "name:1=s instructions:2=*HloInstructionProto program_shape:4=ProgramShapeProto id:5=i root_id:6=i "
        "is_fusion_computation:7=t execution_thread:8=s"
    ),
    "HloInstructionProto": (
        "name:1=s opcode:2=s shape:3=ShapeProto metadata:7=OpMetadata literal:8=LiteralProto parameter_number:9=i "
        "fusion_kind:11=s tuple_index:13=i dimensions:14=*i window:15=Window "
        "convolution_dimension_numbers:16=ConvolutionDimensionNumbers "
        "slice_dimensions:17=*HloInstructionProto.SliceDimensions exponent_bits:18=j mantissa_bits:19=j "
        "dynamic_slice_sizes:20=*i padding_config:21=PaddingConfig outfeed_config:22=b "
        "distribution:23=RandomDistribution epsilon:24=f feature_index:25=i channel_id:26=i infeed_config:27=b "
        "custom_call_target:28=s outfeed_shape:29=ShapeProto dot_dimension_numbers:30=DotDimensionNumbers "
        "fft_type:31=FftType fft_length:32=*i gather_dimension_numbers:33=GatherDimensionNumbers "
        "gather_slice_sizes:34=*i id:35=i operand_ids:36=*i control_predecessor_ids:37=*i "
        "called_computation_ids:38=*i sharding:40=OpSharding backend_config:43=b all_reduce_id:45=i "
        "is_host_transfer:47=t scatter_dimension_numbers:48=ScatterDimensionNumbers replica_groups:49=*ReplicaGroup "
        "feature_group_count:50=i precision_config:51=PrecisionConfig source_target_pairs:52=*SourceTarget "
        "domain_entry_sharding:54=OpSharding domain_exit_sharding:55=OpSharding constrain_layout:56=t "
        "operand_shapes_with_layout:57=*ShapeProto batch_group_count:58=i "
        "triangular_solve_options:59=TriangularSolveOptions is_stable:60=t "
        "parameter_replication:61=ParameterReplication cholesky_options:62=CholeskyOptions comparison_direction:63=s "
        "custom_call_has_side_effect:65=t delta:66=i indices_are_sorted:67=t "
        "frontend_attributes:68=FrontendAttributes unique_indices:69=t rng_algorithm:70=RandomAlgorithm "
        "use_global_device_ids:71=t comparison_type:72=s is_cross_program_prefetch:73=t "
        "output_operand_aliasing:74=*OutputOperandAliasing padding_type:75=PaddingType "
        "custom_call_schedule:76=CustomCallSchedule custom_call_api_version:77=CustomCallApiVersion "
        "async_execution_thread:79=s cross_program_prefetch_index:80=j@optional_cross_program_prefetch_index k:81=i "
        "statistics_viz:82=StatisticsViz largest:85=t "
        "collective_device_list:87=CollectiveDeviceListProto@replica_group_list original_value:88=OriginalValueProto "
        "is_composite:89=t ragged_dot_dimension_numbers:90=RaggedDotDimensionNumbers "
        "result_accuracy:91=ResultAccuracy "
        "iota_collective_device_list:92=IotaReplicaGroupListProto@replica_group_list "
        "mesh_axes_replica_group_list:93=MeshAxesReplicaGroupListProto@replica_group_list is_reverse:94=t "
        "num_carries:95=i is_associative:96=TriState conv_kind:97=ConvolutionKind sparsity_config:98=SparsityConfig "
        "backend_config_payload:99=Payload"
    ),
    "ShapeProto": (
        "element_type:2=PrimitiveType dimensions:3=*i tuple_shapes:4=*ShapeProto layout:5=LayoutProto "
        "is_dynamic_dimension:6=*t"
    ),
    "LayoutProto": (
        "minor_to_major:1=*i tiles:6=*TileProto element_size_in_bits:7=i memory_space:8=i "
        "dim_level_types:9=*DimLevelType physical_shape:10=ShapeProto index_primitive_type:11=PrimitiveType "
        "pointer_primitive_type:12=PrimitiveType dim_unique:13=*t dim_ordered:14=*t "
        "dynamic_shape_metadata_prefix_bytes:15=i tail_padding_alignment_in_elements:16=i "
        "split_configs:17=*SplitConfigProto"
    ),
    "TileProto": "dimensions:1=*i",
    "SplitConfigProto": "dimension:1=i split_indices:2=*i",
    "OpMetadata": (
        "op_type:1=s op_name:2=s source_file:3=s source_line:4=j profile_type:5=*ProfileType "
        "size_of_generated_code_in_bytes:8=i size_of_memory_working_set_in_bytes:9=i "
        "profile_info:10=OpMetadata.ProfileInfo deduplicated_name:12=s stack_frame_id:15=j scheduling_name:16=s "
        "source_end_line:17=j source_column:18=j source_end_column:19=j metadata_payload:20=Payload"
    ),
    "OpMetadata.ProfileInfo": (
        "profile_type:1=*ProfileType relative_speedup:2=d profile_source:3=ProfileSource "
        "compilation_event:4=CompilationEvent profile_generation_strategy:5=ProfileGenerationStrategy"
    ),
    "Payload": "value:1=b@payload_source id:2=i@payload_source",
    "LiteralProto": (
        "shape:1=ShapeProto preds:2=*t u8s:3=b s32s:4=*j s64s:5=*i u32s:6=*v u64s:7=*u f32s:8=*f f64s:9=*d "
        "tuple_literals:10=*LiteralProto f16s:11=b c64s:12=*f bf16s:13=b sparse_indices:14=*i s8s:15=b u16s:16=b "
        "s16s:17=b c128s:18=*d f8e5m2s:19=b f8e4m3fns:20=b s4s:21=b u4s:22=b f8e4m3b11fnuzs:23=b f8e5m2fnuzs:24=b "
        "f8e4m3fnuzs:25=b s2s:26=b u2s:27=b f8e4m3s:28=b f8e3m4s:29=b s1s:30=b u1s:31=b f4e2m1fns:32=b "
        "f8e8m0fnus:33=b dynamic_sizes:34=*j f6e3m2fns:35=b f6e2m3fns:36=b"
    ),
    "Window": "dimensions:1=*WindowDimension",
    "WindowDimension": (
        "size:1=i stride:2=i padding_low:3=i padding_high:4=i window_dilation:5=i base_dilation:6=i window_reversal:7=t"
    ),
    "ConvolutionDimensionNumbers": (
        "kernel_input_feature_dimension:3=i kernel_output_feature_dimension:4=i kernel_spatial_dimensions:6=*i "
        "input_batch_dimension:7=i input_feature_dimension:8=i output_batch_dimension:9=i "
        "output_feature_dimension:10=i input_spatial_dimensions:11=*i output_spatial_dimensions:12=*i"
    ),
    "HloInstructionProto.SliceDimensions": "start:1=i limit:2=i stride:3=i",
    "PaddingConfig": "dimensions:1=*PaddingConfig.PaddingConfigDimension",
    "PaddingConfig.PaddingConfigDimension": "edge_padding_low:1=i edge_padding_high:2=i interior_padding:3=i",
    "DotDimensionNumbers": (
        "lhs_contracting_dimensions:1=*i rhs_contracting_dimensions:2=*i lhs_batch_dimensions:3=*i "
        "rhs_batch_dimensions:4=*i"
    ),
    "GatherDimensionNumbers": (
        "offset_dims:1=*i collapsed_slice_dims:2=*i start_index_map:3=*i index_vector_dim:4=i "
        "operand_batching_dims:5=*i start_indices_batching_dims:6=*i"
    ),
    "OpSharding": (
        "type:1=OpSharding.Type tile_shape:2=ShapeProto tile_assignment_dimensions:3=*i tile_assignment_devices:4=*i "
        "tuple_shardings:5=*OpSharding replicate_on_last_tile_dim:6=t metadata:7=*OpMetadata "
        "last_tile_dims:8=*OpSharding.Type iota_reshape_dims:9=*i iota_transpose_perm:10=*j is_shard_group:11=t "
        "shard_group_id:12=i shard_group_type:13=OpSharding.ShardGroupType named_sharding:14=NamedShardingProto?"
    ),
    "NamedShardingProto": (
        "mesh:2=MeshProto dim_shardings:3=*NamedShardingProto.DimensionSharding replicated_axes:4=*AxisRefProto "
        "unreduced_axes:5=*AxisRefProto metadata:6=*OpMetadata manual_axes:7=*AxisRefProto"
    ),
    "MeshProto": "axes:1=*MeshProto.MeshAxis device_ids:2=*i iota_transform:3=MeshProto.IotaTransform?",
    "MeshProto.MeshAxis": "name:1=s size:2=i",
    "MeshProto.IotaTransform": "reshape_dims:1=*i transpose_perm:2=*i",
    "NamedShardingProto.DimensionSharding": "axes:1=*AxisRefProto is_closed:2=t",
    "AxisRefProto": "mesh_axis_index:1=i sub_axis_info:2=AxisRefProto.SubAxis?",
    "AxisRefProto.SubAxis": "pre_size:1=i size:2=i",
    "ScatterDimensionNumbers": (
        "update_window_dims:1=*i inserted_window_dims:2=*i scatter_dims_to_operand_dims:3=*i index_vector_dim:4=i "
        "input_batching_dims:5=*i scatter_indices_batching_dims:6=*i"
    ),
    "ReplicaGroup": "replica_ids:1=*i",
    "PrecisionConfig": "operand_precision:1=*PrecisionConfig.Precision algorithm:2=PrecisionConfig.Algorithm",
    "SourceTarget": "source:1=i target:2=i",
    "TriangularSolveOptions": (
        "left_side:1=t lower:2=t unit_diagonal:3=t transpose_a:4=TriangularSolveOptions.Transpose"
    ),
    "ParameterReplication": "replicated_at_leaf_buffers:1=*t",
    "CholeskyOptions": "lower:1=t",
    "FrontendAttributes": "map:1=s>s",
    "OutputOperandAliasing": "output_shape_index:1=*i operand_index:2=i operand_shape_index:3=*i",
    "StatisticsViz": "stat_index_to_visualize:1=i statistics:2=*Statistic",
    "Statistic": "stat_name:1=s stat_val:2=d",
    "CollectiveDeviceListProto": "replica_groups:1=*ReplicaGroup",
    "OriginalValueProto": "elements:1=*OriginalValueElementProto is_synthetic_call:2=t",
    "OriginalValueElementProto": "shape_index:1=*i original_array:2=OriginalArrayProto",
    "OriginalArrayProto": "instruction_name:1=s shape_index:2=*i",
    "RaggedDotDimensionNumbers": (
        "dot_dimension_numbers:1=DotDimensionNumbers lhs_ragged_dimensions:2=*i rhs_group_dimensions:3=*i"
    ),
    "ResultAccuracy": "mode:1=ResultAccuracy.Mode@specs tolerance:2=ResultAccuracy.Tolerance@specs",
    "ResultAccuracy.Tolerance": "atol:1=d rtol:2=d ulps:3=i",
    "IotaReplicaGroupListProto": (
        "num_replica_groups:1=i num_devices_per_group:2=i iota_reshape_dims:3=*i iota_transpose_perm:4=*j"
    ),
    "MeshAxesReplicaGroupListProto": "mesh:1=MeshProto axes:2=*AxisRefProto",
    "SparsityConfig": "lhs:1=SparsityConfig.TensorSparsityConfig rhs:2=SparsityConfig.TensorSparsityConfig",
    "SparsityConfig.TensorSparsityConfig": "num_non_zero:1=i block_size:2=i dimension:3=i stride:4=i",
    "ProgramShapeProto": "parameters:1=*ShapeProto result:2=ShapeProto parameter_names:3=*s",
    "HloScheduleProto": "sequences:1=i>HloScheduleProto.InstructionSequence",
    "HloScheduleProto.InstructionSequence": "instruction_ids:1=*i",
    "HloInputOutputAliasProto": "entries:1=*HloInputOutputAliasProto.AliasEntryProto",
    "HloInputOutputAliasProto.AliasEntryProto": (
        "output_shape_index:1=*i parameter_number:2=i parameter_shape_index:3=*i kind:4=Kind"
    ),
    "CrossProgramPrefetch": "parameter:1=i index:2=*i offset:3=i",
    "HloModuleProto.ProfileInfo": (
        "profile_type:1=HloModuleProto.ProfileType relative_speedup:2=d profile_source:3=ProfileSource "
        "compilation_event:4=CompilationEvent fingerprint:5=s profile_generation_strategy:6=ProfileGenerationStrategy "
        "original_changelist:7=i changelist:8=i"
    ),
    "DeviceAssignmentProto": (
        "replica_count:1=j computation_count:2=j computation_devices:3=*DeviceAssignmentProto.ComputationDevice"
    ),
    "DeviceAssignmentProto.ComputationDevice": "replica_device_ids:1=*i",
    "StackFrameIndexProto": (
        "file_names:1=*s function_names:2=*s file_locations:3=*StackFrameIndexProto.FileLocation "
        "stack_frames:4=*StackFrameIndexProto.StackFrame"
    ),
    "StackFrameIndexProto.FileLocation": (
        "file_name_id:1=j function_name_id:2=j line:3=j column:4=j end_line:5=j end_column:6=j"
    ),
    "StackFrameIndexProto.StackFrame": "file_location_id:1=j parent_frame_id:2=j",
    "HloBufferDonorProto": "entries:1=*HloBufferDonorProto.BufferDonorEntryProto",
    "HloBufferDonorProto.BufferDonorEntryProto": "parameter_number:1=i parameter_shape_index:2=*i",
    "OriginalValueRecoveryTableProto": "entries:1=*OriginalValueRecoveryTableProto.Entry",
    "OriginalValueRecoveryTableProto.Entry": (
        "old_original_array:1=OriginalArrayProto new_original_array:2=OriginalArrayProto "
        "recovery_module:3=HloModuleProto"
    ),
    "BufferAssignmentProto": (
        "logical_buffers:1=*LogicalBufferProto buffer_aliases:2=*BufferAssignmentProto.BufferAlias "
        "buffer_allocations:3=*BufferAllocationProto heap_simulator_traces:4=*HeapSimulatorTrace "
        "peak_buffers:5=*BufferAssignmentProto.PeakBuffers"
    ),
    "LogicalBufferProto": "id:1=i size:2=i defined_at:3=LogicalBufferProto.Location color:4=i",
    "LogicalBufferProto.Location": "instruction_name:2=s shape_index:3=*i instruction_id:4=i",
    "BufferAssignmentProto.BufferAlias": "source_buffer_id:1=i location:2=LogicalBufferProto.Location",
    "BufferAllocationProto": (
        "index:1=i size:2=i is_thread_local:3=t is_entry_computation_parameter:5=t parameter_number:6=i "
        "maybe_live_out:7=t color:8=i assigned:9=*BufferAllocationProto.Assigned parameter_shape_index:10=*i "
        "is_tuple:11=t is_constant:12=t is_parameter_aliased_with_output:13=t"
    ),
    "BufferAllocationProto.Assigned": "logical_buffer_id:1=i offset:2=i size:3=i element_type:4=PrimitiveType",
    "HeapSimulatorTrace": (
        "events:1=*HeapSimulatorTrace.Event whole_module_simulation:2=t buffer_allocation_index:3=i"
    ),
    "HeapSimulatorTrace.Event": (
        "kind:1=HeapSimulatorTrace.Event.Kind buffer_id:2=i computation_name:3=s instruction_name:4=s "
        "share_with_canonical_id:5=i"
    ),
    "BufferAssignmentProto.PeakBuffers": "index:1=i logical_buffer_ids:2=*i",
}
"""A message of XLA → its fields, `name:number=type`."""

ENUMS: dict[str, str] = {
    "PrimitiveType": (
        "PRIMITIVE_TYPE_INVALID=0 PRED=1 S1=30 S2=26 S4=21 S8=2 S16=3 S32=4 S64=5 U1=31 U2=27 U4=22 U8=6 U16=7 U32=8 "
        "U64=9 F16=10 F32=11 BF16=16 F64=12 F8E5M2=19 F8E4M3=28 F8E4M3FN=20 F8E4M3B11FNUZ=23 F8E3M4=29 F8E5M2FNUZ=24 "
        "F8E4M3FNUZ=25 F4E2M1FN=32 F8E8M0FNU=33 F6E3M2FN=35 F6E2M3FN=36 C64=15 C128=18 TUPLE=13 OPAQUE_TYPE=14 "
        "TOKEN=17 BUFFER=34"
    ),
    "DimLevelType": "DIM_DENSE=0 DIM_COMPRESSED=1 DIM_SINGLETON=2 DIM_LOOSE_COMPRESSED=3",
    "ProfileType": "INVALID=0 WINDOW=1 FLAG=2 INTEGER=3",
    "ProfileSource": "PROFILE_SOURCE_UNKNOWN_SOURCE=0 PROFILE_SOURCE_EMBEDDED=1 PROFILE_SOURCE_REMOTE=2",
    "CompilationEvent": (
        "COMPILATION_EVENT_UNKNOWN_EVENT=0 COMPILATION_EVENT_FIRST_COMPILATION=1 COMPILATION_EVENT_RECOMPILATION=2"
    ),
    "ProfileGenerationStrategy": (
        "PROFILE_GENERATION_STRATEGY_UNKNOWN=0 PROFILE_GENERATION_STRATEGY_GA=1 PROFILE_GENERATION_STRATEGY_FANTA=2 "
        "PROFILE_GENERATION_STRATEGY_CFO=3 PROFILE_GENERATION_STRATEGY_EXHAUSTIVE=4 "
        "PROFILE_GENERATION_STRATEGY_LCM_GNN=5 PROFILE_GENERATION_STRATEGY_LCM_MOE=6"
    ),
    "RandomDistribution": "RNG_INVALID=0 RNG_UNIFORM=1 RNG_NORMAL=2",
    "FftType": "FFT=0 IFFT=1 RFFT=2 IRFFT=3",
    "OpSharding.Type": "REPLICATED=0 MAXIMAL=1 TUPLE=2 OTHER=3 MANUAL=4 UNKNOWN=5 UNREDUCED=6",
    "OpSharding.ShardGroupType": "AS=0 LIKE=1",
    "PrecisionConfig.Precision": "DEFAULT=0 HIGH=1 HIGHEST=2",
    "PrecisionConfig.Algorithm": (
        "ALG_UNSET=0 ALG_DOT_ANY_F8_ANY_F8_F32=1 ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM=2 ALG_DOT_F16_F16_F16=3 "
        "ALG_DOT_F16_F16_F32=4 ALG_DOT_BF16_BF16_BF16=5 ALG_DOT_BF16_BF16_F32=6 ALG_DOT_BF16_BF16_F32_X3=7 "
        "ALG_DOT_BF16_BF16_F32_X6=8 ALG_DOT_TF32_TF32_F32=9 ALG_DOT_TF32_TF32_F32_X3=10 ALG_DOT_F32_F32_F32=11 "
        "ALG_DOT_F64_F64_F64=12 ALG_DOT_BF16_BF16_F32_X9=13"
    ),
    "TriangularSolveOptions.Transpose": "TRANSPOSE_INVALID=0 NO_TRANSPOSE=1 TRANSPOSE=2 ADJOINT=3",
    "RandomAlgorithm": "RNG_DEFAULT=0 RNG_THREE_FRY=1 RNG_PHILOX=2",
    "PaddingType": "PADDING_INVALID=0 PADDING_VALID=1 PADDING_SAME=2",
    "CustomCallSchedule": "SCHEDULE_NONE=0 SCHEDULE_LATEST=1 SCHEDULE_EARLIEST=2",
    "CustomCallApiVersion": (
        "API_VERSION_UNSPECIFIED=0 API_VERSION_ORIGINAL=1 API_VERSION_STATUS_RETURNING=2 "
        "API_VERSION_STATUS_RETURNING_UNIFIED=3 API_VERSION_TYPED_FFI=4"
    ),
    "ResultAccuracy.Mode": "DEFAULT=0 HIGHEST=1",
    "TriState": "TRI_STATE_UNSPECIFIED=0 TRI_STATE_TRUE=1 TRI_STATE_FALSE=2",
    "ConvolutionKind": (
        "CONVOLUTION_KIND_UNSET=0 CONVOLUTION_KIND_FPROP=1 CONVOLUTION_KIND_DGRAD=2 CONVOLUTION_KIND_WGRAD=3"
    ),
    "Kind": "UNDEFINED_ALIAS=0 MAY_ALIAS=1 MUST_ALIAS=2",
    "HloModuleProto.ProfileType": "INVALID=0 FLAG=1 FUSION=2 LAYOUT=3 DOT=4 FLAGNET=5 SHARDING=6 SCHEDULE=7",
    "HeapSimulatorTrace.Event.Kind": "ALLOC=0 FREE=1 SHARE_WITH=2",
}
"""An enum of XLA → its values."""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "i": _Field.TYPE_INT64,
    "j": _Field.TYPE_INT32,
    "u": _Field.TYPE_UINT64,
    "v": _Field.TYPE_UINT32,
    "f": _Field.TYPE_FLOAT,
    "d": _Field.TYPE_DOUBLE,
    "t": _Field.TYPE_BOOL,
    "s": _Field.TYPE_STRING,
    "b": _Field.TYPE_BYTES,
}


def _declare(owner: Any, row: str, path: str) -> None:
    """Add one `name:number=type` to a message."""
    name, rest = row.split(":")
    number, kind = rest.split("=")
    field = owner.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
    if ">" in kind:
        key, value = kind.split(">")
        entry = name.title().replace("_", "") + "Entry"
        nested = owner.nested_type.add(name=entry)
        nested.options.map_entry = True
        _declare(nested, f"key:1={key}", "")
        _declare(nested, f"value:2={value}", "")
        field.label, field.type, field.type_name = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE, f".xla.{path}.{entry}"
        return
    if kind.startswith("*"):
        field.label, kind = _Field.LABEL_REPEATED, kind[1:]
    if kind.endswith("?"):
        kind = kind[:-1]
        field.proto3_optional = True
        field.oneof_index = len(owner.oneof_decl)
        owner.oneof_decl.add(name=f"_{name}")
    elif "@" in kind:
        kind, oneof = kind.split("@")
        known = [o.name for o in owner.oneof_decl]
        if oneof not in known:
            owner.oneof_decl.add(name=oneof)
        field.oneof_index = [o.name for o in owner.oneof_decl].index(oneof)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind in ENUMS else _Field.TYPE_MESSAGE
        field.type_name = f".xla.{kind}"


def file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """The tables as one proto file."""
    file = descriptor_pb2.FileDescriptorProto(name="testbed/hlo.proto", package="xla", syntax="proto3")
    made: dict[str, Any] = {}
    for path in sorted(MESSAGES, key=lambda p: p.count(".")):
        outer, _, name = path.rpartition(".")
        made[path] = (made[outer].nested_type if outer else file.message_type).add(name=name)
    for path, values in ENUMS.items():
        outer, _, name = path.rpartition(".")
        enum = (made[outer] if outer else file).enum_type.add(name=name)
        for value in values.split():
            label, number = value.split("=")
            enum.value.add(name=label, number=int(number))
    for path, rows in MESSAGES.items():
        for row in rows.split():
            _declare(made[path], row, path)
    return file


_pool = descriptor_pool.DescriptorPool()  # our own: a process may hold XLA's generated classes, too
_pool.AddSerializedFile(file_descriptor().SerializeToString())


def message(name: str) -> Any:
    """The class of a message, `message("HloModuleProto")`."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"xla.{name}"))


def enum_name(enum: str, number: int) -> str | None:
    """The label of an enum's value; None for a number that it does not have."""
    return _LABELS[enum].get(number)


def enum_number(enum: str, label: str) -> int | None:
    return _NUMBERS[enum].get(label)


_NUMBERS = {e: {v.split("=")[0]: int(v.split("=")[1]) for v in values.split()} for e, values in ENUMS.items()}
_LABELS = {e: {number: label for label, number in values.items()} for e, values in _NUMBERS.items()}
