"""What the headers of versions 0.1 and 0.2 of XLA's FFI say otherwise than that of 0.3, in bytes.

Measured by `python -m testbed.tests.support.ffi_layouts INCLUDE` on the headers in wheels of jaxlib. All that is not
named here is equal: the call frame, buffers, attributes, errors, registrations of handlers, memory, tasks and futures.
"""

OLD_STATE = {"State_Get_Args": 40, "State_Get_Args.type_id": 24, "State_Get_Args.state": 32}
OLDEST_STATE = {"State_Set_Args": 48, "State_Set_Args.type_id": 24, "State_Set_Args.state": 32}
OLDEST_STATE |= {"State_Set_Args.deleter": 40, "TypeId_Register_Args": 40, "TypeId_Register_Args.type_id": 32}

LAYOUTS: dict[str, dict[str, int]] = {
    # version 0.1: the slot of Type_Register is called TypeId_Register; it takes no TypeInfo
    "0.4.35": {
        **OLD_STATE,
        **OLDEST_STATE,
        "Metadata": 40,
        # before ThreadPool_NumThreads came between them, under the same version
        "Api": 168,
        "Api.Future_Create": 144,
        "Api.Future_SetAvailable": 152,
        "Api.Future_SetError": 160,
    },
    "0.7.2": {**OLD_STATE, **OLDEST_STATE, "Metadata": 40},
    "0.8.0": {**OLD_STATE, **OLDEST_STATE, "TypeInfo": 8, "TypeInfo.deleter": 0},
    # version 0.2; jaxlib 0.9.0 has the same, and 0.9.1 is of version 0.3
    "0.8.1": {**OLD_STATE, "State_Set_Args": 40, "State_Set_Args.type_id": 24, "State_Set_Args.state": 32},
}
"""Version of jaxlib → name of a structure, field or function → its size or offset."""
