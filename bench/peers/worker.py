"""One peer, driven over stdin: worker.py PEER MODEL THREADS INPUT.npy BATCH. See peers.py."""

import ctypes
import json
import os
import pathlib
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MAX_RUNS = 2000  # in one turn


class Options(ctypes.Structure):
    _fields_ = [("devices", ctypes.c_char_p), ("providers", ctypes.c_char_p), ("threads", ctypes.c_int),
                ("contexts", ctypes.c_int), ("dim_names", ctypes.POINTER(ctypes.c_char_p)),
                ("dim_sizes", ctypes.POINTER(ctypes.c_int64)), ("dim_count", ctypes.c_size_t)]


class Io(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_size_t), ("bytes", ctypes.c_size_t)]


def leading_symbol(path):
    import onnx

    dimension = onnx.load(path, load_external_data=False).graph.input[0].type.tensor_type.shape.dim[0]
    name = onnx.load(path, load_external_data=False).graph.input[0].name
    return dimension.dim_param or f"{name}_dim0"


class Turnout:
    def __init__(self, path, threads, feed):
        build = pathlib.Path(os.environ.get("TURNOUT_BUILD") or ROOT / "build" / "release")
        self.library = ctypes.CDLL(str(build / "lib" / "libturnout.so"))
        self.library.turnout_last_error.restype = ctypes.c_char_p
        model = ctypes.c_void_p()
        self.check(self.library.turnout_model_load(str(path).encode(), ctypes.byref(model)))
        names = (ctypes.c_char_p * 1)(leading_symbol(path).encode())
        sizes = (ctypes.c_int64 * 1)(feed.shape[0])
        options = Options(threads=threads, dim_names=names, dim_sizes=sizes, dim_count=1)
        providers = os.environ.get("TURNOUT_PROVIDERS")
        if providers:
            options.providers = providers.encode()
        self.session = ctypes.c_void_p()
        self.check(self.library.turnout_session_create(model, ctypes.byref(options), ctypes.byref(self.session)))
        io = Io()
        self.check(self.library.turnout_session_output(self.session, ctypes.c_size_t(0), ctypes.byref(io)))
        self.result = np.zeros([io.dims[i] for i in range(io.rank)], np.float32)
        self.feed = feed
        self.inputs = (ctypes.c_void_p * 1)(feed.ctypes.data)
        self.outputs = (ctypes.c_void_p * 1)(self.result.ctypes.data)

    def check(self, status):
        if status != 0:
            raise SystemExit(f"turnout: {self.library.turnout_last_error().decode()}")

    def run(self):
        self.check(self.library.turnout_session_run(self.session, self.inputs, self.outputs))


class OnnxRuntime:
    def __init__(self, path, threads, feed):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = session.io_binding()
        self.feed = onnxruntime.OrtValue.ortvalue_from_numpy(feed)
        self.binding.bind_ortvalue_input(session.get_inputs()[0].name, self.feed)
        first = session.run(None, {session.get_inputs()[0].name: feed})[0]
        self.output = onnxruntime.OrtValue.ortvalue_from_numpy(first)
        self.binding.bind_ortvalue_output(session.get_outputs()[0].name, self.output)
        self.session = session

    def run(self):
        self.session.run_with_iobinding(self.binding)

    @property
    def result(self):
        return self.output.numpy()


def timed(peer, seconds):
    times = []
    end = time.perf_counter() + seconds
    while len(times) < MAX_RUNS and (time.perf_counter() < end or not times):
        begin = time.perf_counter()
        peer.run()
        times.append(time.perf_counter() - begin)
    return times


def main():
    name, path, threads, feed, _ = sys.argv[1:]
    peer = {"turnout": Turnout, "onnxruntime": OnnxRuntime}[name](pathlib.Path(path), int(threads), np.load(feed))
    for _ in range(3):
        peer.run()
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            for _ in range(2):  # wake threads and caches that slept during the other's turn
                peer.run()
            answer = timed(peer, float(arguments[0]))
        elif command == "output":
            answer = np.asarray(peer.result).ravel().tolist()
        else:
            answer = "ready"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
