"""Tests of transfers, compilation and runs."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np

from ...codegen.options import EmitOptions
from ...evaluator.evaluator import evaluate
from ...hlo.dtypes import FROM_NUMPY, DType
from ...hlo.errors import InputError, TestbedError
from ...hlo.shapes import Shape, array, tuple_shape
from ..base import AheadOptions, CompileOptions, Executable
from ..device import BackendError, Capability
from .context import Context, needs, refuses
from .programs import FED, PROGRAMS, Program, drawn

DIMS = ((), (1,), (0, 2), (2, 3), (2, 1, 3, 1, 2, 1, 1, 2))


def _bits(a: np.ndarray) -> bytes:
    """What must be the same; integers of less than 8 bits have unused ones in memory."""
    return (a.astype(np.int8) if FROM_NUMPY[a.dtype].bits < 8 and a.dtype.kind != "b" else a).tobytes()


class TransferChecks(Context):
    def _back(self, value: np.ndarray, shape: Shape) -> np.ndarray:
        memory = self.transfers.transfer_to_device(self.executor, value, shape)
        assert memory.size >= self.transfers.byte_size_requirement(shape)
        found = self.transfers.transfer_from_device(self.executor, memory, shape)
        self.executor.deallocate(memory)
        return found

    def test_arrays_of_every_type_come_back(self) -> None:
        rng = np.random.default_rng(0)
        for dtype in (d for d in DType if d.is_array):
            for dims in DIMS:
                value = drawn(rng, array(dtype, *dims))
                found = self._back(value, array(dtype, *dims))
                assert found.dtype == value.dtype and found.shape == value.shape and found.flags.c_contiguous
                assert found.tobytes() == value.tobytes()

    def test_wrong_arrays_are_refused(self) -> None:
        shape, executor = array(DType.F32, 2, 3), self.executor
        for wrong in (np.zeros((3, 2), np.float32), np.zeros((2, 3), np.float64)):
            refuses(partial(self.transfers.transfer_to_device, executor, wrong, shape), "f32[2,3]", kind=InputError)
        small = executor.allocate(8)
        refuses(lambda: self.transfers.transfer_from_device(executor, small, shape), "24 bytes", "8")

    def test_tuples_have_a_block_for_each_leaf(self) -> None:
        shape = tuple_shape(array(DType.F32, 2), tuple_shape(array(DType.U8, 5), array(DType.S32)))
        values: list[np.ndarray] = [np.ones(2, np.float32), np.arange(5, dtype=np.uint8), np.array(7, np.int32)]
        assert self.transfers.byte_size_requirement(shape) >= 17
        buffer = self.transfers.transfer_tuple_to_device(self.executor, values, shape)
        assert buffer.shape == shape and len(buffer.leaves) == 3
        found = self.transfers.transfer_tuple_from_device(self.executor, buffer)
        assert [f.tolist() for f in found] == [v.tolist() for v in values]
        wrong = [values[0], values[0], values[2]]
        for given in (values[:2], wrong):
            give = partial(self.transfers.transfer_tuple_to_device, self.executor, given, shape)
            refuses(give, kind=InputError)

    def test_layouts(self) -> None:
        """Where they are declared, an array lies on the device in the layout of its shape; else in row-major order."""
        value = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
        for order in ((2, 1, 0), (0, 1, 2), (1, 0, 2)):
            shape = array(DType.S16, 2, 3, 4).with_layout(order)
            memory = self.transfers.transfer_to_device(self.executor, value, shape)
            raw = np.zeros(24, np.int16)
            self.executor.synchronous_memcpy_to_host(raw, memory)
            on_device = self.transfers.device_shape(shape)
            assert on_device.minor_to_major == (order if self.declares(Capability.LAYOUTS) else (2, 1, 0))
            assert (raw == value.transpose(on_device.minor_to_major[::-1]).reshape(-1)).all()
            assert (self.transfers.transfer_from_device(self.executor, memory, shape) == value).all()

    def use_async_transfers(self) -> object:
        stream, shape = self.executor.create_stream(), array(DType.F32, 2)
        return self.transfers.transfer_to_device_async(stream, np.zeros(2, np.float32), shape)

    @needs(Capability.ASYNC_COPIES, "use_async_transfers")
    def test_transfers_in_a_stream(self) -> None:
        value, stream = np.arange(6, dtype=np.float32).reshape(2, 3), self.executor.create_stream()
        shape = array(DType.F32, 2, 3)
        memory = self.transfers.transfer_to_device_async(stream, value, shape)
        result, turned = np.zeros_like(value), np.zeros((3, 2), np.float32).T
        self.transfers.transfer_from_device_async(stream, memory, shape, result)
        if self.declares(Capability.HOST_CALLBACKS):
            self.transfers.transfer_from_device_async(stream, memory, shape, turned)
        stream.synchronize()
        assert (result == value).all()
        assert (turned == (value if self.declares(Capability.HOST_CALLBACKS) else 0)).all()


class RunChecks(Context):
    def _names(self) -> frozenset[str]:
        return frozenset(PROGRAMS) if self.programs is None else self.programs

    def _agree(self, program: Program, found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            if program.tolerance:
                np.testing.assert_allclose(a, b, rtol=program.tolerance, atol=program.tolerance)
            else:
                assert _bits(a) == _bits(b), f"{program.text}: {a} is not {b}"

    def test_programs_have_the_evaluators_results(self) -> None:
        names = self._names()
        assert names and names <= PROGRAMS.keys(), f"unknown programs: {sorted(names - PROGRAMS.keys())}"
        for name in sorted(names):
            program = PROGRAMS[name]
            inputs = program.inputs(1)
            kept = [x.copy() for x in inputs]
            found = self.compile(program.text).execute(inputs)
            self._agree(program, found, evaluate(program.module(), kept))
            assert all((x == k).all() for x, k in zip(inputs, kept, strict=True)), f"{name} wrote to its inputs"

    def test_other_programs_are_refused_in_one_line(self) -> None:
        others = sorted(PROGRAMS.keys() - self._names())
        for name in others:
            program = PROGRAMS[name]
            refuses(partial(self._run, program), kind=TestbedError)
        assert len(others) + len(self._names()) == len(PROGRAMS)

    def _run(self, program: Program) -> list[np.ndarray]:
        return self.compile(program.text).execute(program.inputs())

    def _executable(self) -> Executable:
        return self.compile(PROGRAMS["negate"].text)

    def test_wrong_inputs_are_refused(self) -> None:
        executable, good = self._executable(), np.zeros(8, np.float32)
        for wrong in ([], [good, good], [np.zeros(7, np.float32)], [np.zeros(8, np.int32)]):
            try:
                executable.execute(wrong)
            except InputError as error:
                assert "\n" not in str(error)
            else:
                raise AssertionError(f"nothing was refused: {wrong}")
        assert (executable.execute([good])[0] == 0).all()

    def test_results_are_written_to_given_arrays(self) -> None:
        executable, x = self._executable(), np.arange(8, dtype=np.float32)
        (mine,) = executable.execute([x])
        (result,) = executable.execute([x + 1], outputs=[mine])
        assert result is mine and (mine == -(x + 1)).all()
        for wrong in ([None, None], [np.zeros(8, np.float64)], [np.zeros(9, np.float32)]):
            try:
                executable.execute([x], outputs=wrong)
            except InputError as error:
                assert "\n" not in str(error)
            else:
                raise AssertionError(f"nothing was refused: {wrong}")

    def test_eight_threads_run_a_program(self) -> None:
        executable, wrong = self._executable(), list[object]()

        def work(number: int) -> None:
            try:
                for turn in range(10):
                    x = np.full(8, number + turn / 100, np.float32)
                    if not (executable.execute([x])[0] == -x).all():
                        wrong.append((number, turn))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not wrong and not any(thread.is_alive() for thread in threads)

    def use_async_execution(self) -> object:
        memory = self.transfers.transfer_to_device(self.executor, np.zeros(8, np.float32), array(DType.F32, 8))
        return self._executable().execute_async_on_stream(self.executor.create_stream(), [memory])

    @needs(Capability.ASYNC_EXECUTION, "use_async_execution")
    def test_runs_in_a_stream(self) -> None:
        for name in sorted(self._names() & {"negate", "tuple", "layouts", "while", "empty"}):
            program = PROGRAMS[name]
            executable, module, inputs = self.compile(program.text), program.module(), program.inputs(2)
            shapes = [leaf for shape in module.parameter_shapes for _, leaf in shape.leaves()]
            given = [
                self.transfers.transfer_to_device(self.executor, x, s) for x, s in zip(inputs, shapes, strict=True)
            ]
            stream = self.executor.create_stream()
            found = executable.execute_async_on_stream(stream, given)
            stream.synchronize()
            leaves = [leaf for _, leaf in module.result_shape.leaves()]
            arrays = [
                self.transfers.transfer_from_device(self.executor, m, s) for m, s in zip(found, leaves, strict=True)
            ]
            self._agree(program, arrays, evaluate(module, inputs))
        executable, stream = self._executable(), self.executor.create_stream()
        few, small = [], [self.executor.allocate(4)]
        refuses(lambda: executable.execute_async_on_stream(stream, few), "1 input", kind=InputError)
        refuses(lambda: executable.execute_async_on_stream(stream, small), "32 bytes", kind=InputError)

    def use_serialization(self) -> object:
        return self._executable().serialize()

    def use_loading(self) -> object:
        return self.device_platform.compiler().load_executable(b"nothing")

    @needs(Capability.SERIALIZATION, "use_serialization")
    def test_a_program_comes_back_from_its_bytes(self) -> None:
        x = np.arange(8, dtype=np.float32)
        compiler, executable = self.device_platform.compiler(), self._executable()
        for key in (None, b"secret"):
            data = executable.serialize(key)
            assert (compiler.load_executable(data, key).execute([x])[0] == -x).all()
            for bad in (data[:-1], data[:20], b"", bytes([*data[:40], data[40] ^ 1, *data[41:]])):
                refuses(partial(compiler.load_executable, bad, key), kind=TestbedError)
        refuses(lambda: compiler.load_executable(executable.serialize(b"secret"), b"another"), kind=TestbedError)

    @needs(Capability.SERIALIZATION, "use_loading")
    def test_other_bytes_are_no_program(self) -> None:
        refuses(self.use_loading, kind=TestbedError)

    def use_ahead_of_time(self) -> object:
        compiler = self.device_platform.compiler()
        program = compiler.run_hlo_passes(PROGRAMS["negate"].module(), CompileOptions(cache=None))
        return compiler.compile_ahead_of_time(program, self.chosen_stack, AheadOptions(EmitOptions.host(), "negated"))

    @needs(Capability.AHEAD_OF_TIME, "use_ahead_of_time")
    def test_a_program_is_compiled_ahead_of_time(self) -> None:
        files = self.use_ahead_of_time()
        assert isinstance(files, dict) and files
        assert all(isinstance(data, bytes) and data for data in files.values())
        assert any("negated" in name for name in files)

    def use_feeds(self) -> None:
        self.transfers.transfer_to_infeed(self._executable(), [np.zeros(3, np.float32)])

    @needs(Capability.FEEDS, "use_feeds")
    def test_feeds(self) -> None:
        executable, x = self.compile(FED), np.arange(3, dtype=np.float32)
        for turn in range(2):
            self.transfers.transfer_to_infeed(executable, [x + turn])
        for turn in range(2):
            assert (executable.execute([])[0] == 2 * (x + turn)).all()
            (written,) = self.transfers.transfer_from_outfeed(executable)
            assert (written == -(x + turn)).all()
        refuses_input = [
            lambda: self.transfers.transfer_to_infeed(executable, [np.zeros(4, np.float32)]),
            lambda: self.transfers.transfer_to_infeed(self._executable(), [x]),
            lambda: self.transfers.transfer_from_outfeed(executable),
        ]
        for action in refuses_input:
            try:
                action()
            except InputError as error:
                assert "\n" not in str(error)
            else:
                raise AssertionError("nothing was refused")

    @needs(Capability.FEEDS, "use_feeds")
    def test_an_infeed_without_values(self) -> None:
        executable = self.compile(FED)
        executable.close_infeed()
        refused = None
        try:
            executable.execute([])
        except (InputError, BackendError) as error:
            refused = str(error)
        assert refused and "\n" not in refused
