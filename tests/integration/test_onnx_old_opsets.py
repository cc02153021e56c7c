"""Nodes of every opset since 7, in forms that changed on the way: what the importer makes of them is
compared with onnxruntime. Writes one ONNX test folder a case and lets `turnout verify` run them."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from program import PROGRAM, every_op

SEED = 5
rng = np.random.default_rng(SEED)


def data(*shape, dtype=np.float32):
    return (rng.standard_normal(shape) * 2).astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


def reals(*values):
    return np.array(values, np.float32)


class Const:
    """An input of the node that is an initializer of the model."""

    def __init__(self, array):
        self.array = np.asarray(array)


def case(op, opset, inputs, outputs=1, **attrs):
    return op, opset, inputs, outputs, attrs


def reductions(x):
    for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSumExp", "SumSquare"):
        yield case("Reduce" + name, 7, [x], axes=[0, 2], keepdims=0)
        yield case("Reduce" + name, 11, [x], axes=[-1])
        yield case("Reduce" + name, 11, [x])
        if name != "Sum":
            yield case("Reduce" + name, 18, [x, Const(ints(1))], keepdims=0)
    yield case("ReduceSum", 13, [x, Const(ints(-2))], keepdims=0)
    yield case("ReduceSum", 13, [x], noop_with_empty_axes=1)
    yield case("ArgMax", 7, [x], axis=1, keepdims=0)
    yield case("ArgMin", 11, [x], axis=-1)
    yield case("ArgMax", 12, [x], axis=2, select_last_index=1)
    yield case("CumSum", 11, [x, Const(np.int32(1))], reverse=1, exclusive=1)
    yield case("TopK", 7, [x], 2, k=2)
    yield case("TopK", 10, [x, Const(ints(3))], 2, axis=1)
    yield case("TopK", 11, [x, Const(ints(2))], 2, axis=0, largest=0)


def shapes_and_movement(x):
    yield case("Slice", 7, [x], starts=[0, -3], ends=[9, 3], axes=[1, 2])
    yield case("Slice", 9, [x], starts=[1, 0, 1], ends=[2, 2, -1])
    yield case("Slice", 10, [x, Const(ints(3)), Const(ints(-5)), Const(ints(2)), Const(ints(-2))])
    yield case("Slice", 13, [x, Const(ints(1)), Const(ints(2**31)), Const(ints(-1))])
    yield case("Split", 7, [x], 2, axis=2)
    yield case("Split", 11, [x], 2, axis=-1, split=[1, 3])
    yield case("Split", 13, [x, Const(ints(3, 1))], 2, axis=2)
    yield case("Split", 13, [x], 3, axis=1)
    yield case("Split", 18, [x], 3, axis=2, num_outputs=3)
    yield case("Squeeze", 7, [data(1, 3, 1)], axes=[2])
    yield case("Squeeze", 11, [data(1, 3, 1)], axes=[-1, 0])
    yield case("Squeeze", 11, [data(1, 3, 1)])
    yield case("Squeeze", 13, [data(1, 3, 1), Const(ints(0))])
    yield case("Unsqueeze", 7, [x], axes=[0, 4])
    yield case("Unsqueeze", 11, [x], axes=[-1, 1])
    yield case("Unsqueeze", 13, [x, Const(ints(1, -1))])
    yield case("Pad", 7, [x], pads=[0, 1, 2, 0, 0, 1], value=1.5)
    yield case("Pad", 10, [x], pads=[0, 1, 2, 0, 1, 1], mode="reflect")
    yield case("Pad", 10, [x], pads=[0, 1, 2, 0, 1, 1], mode="edge")
    yield case("Pad", 11, [x, Const(ints(0, 0, 1, 1, 0, -1)), Const(np.float32(3))])
    yield case("Pad", 18, [x, Const(ints(1, 2)), "", Const(ints(-1))])
    yield case("Pad", 19, [x, Const(ints(0, 1, 2, 0, 1, 1))], mode="wrap")
    yield case("Flatten", 9, [x], axis=0)
    yield case("Flatten", 11, [x], axis=-1)
    yield case("Scatter", 9, [x, Const(ints(1, 0).reshape(1, 1, 2)), data(1, 1, 2)], axis=2)
    yield case("ScatterElements", 11, [x, Const(ints(-1).reshape(1, 1, 1)), data(1, 1, 1)], axis=1)
    yield case("Gather", 7, [x, Const(ints(1, 0))], axis=1)
    yield case("Gather", 11, [x, Const(ints(-1, 0))], axis=-1)
    yield case("OneHot", 9, [ints(1, 2), Const(ints(4)), reals(0.5, 2)])
    yield case("OneHot", 11, [ints(-1, 2), Const(ints(4)), reals(0.5, 2)], axis=0)
    yield case("Tile", 7, [x, Const(ints(1, 2, 2))])
    yield case("Expand", 8, [data(3, 1), Const(ints(2, 1, 4))])
    yield case("EyeLike", 9, [data(3, 4)], k=1)
    yield case("Reshape", 7, [x, Const(ints(0, -1))])
    yield case("DepthToSpace", 7, [data(1, 8, 2, 3)], blocksize=2)
    yield case("DepthToSpace", 11, [data(1, 8, 2, 3)], blocksize=2, mode="CRD")
    yield case("Shape", 15, [x], start=1)
    yield case("Trilu", 14, [data(3, 4), Const(np.int64(1))], upper=0)


def elementwise(x):
    for opset in (7, 9, 10):
        yield case("Clip", opset, [x], min=-0.5, max=0.75)
        yield case("Clip", opset, [x], min=0.25)
    yield case("Clip", 11, [x, Const(np.float32(-1)), Const(np.float32(1))])
    yield case("Clip", 13, [x, "", Const(np.float32(1))])
    for op in ("Max", "Min", "Sum", "Mean"):
        yield case(op, 8, [x, data(3, 1), data(1, 1, 4)])
        yield case(op, 13, [x])
    yield case("Max", 7, [x, data(2, 3, 4)])
    yield case("Dropout", 7, [x], ratio=0.3)
    yield case("Dropout", 12, [x, Const(np.float32(0.3))])
    yield case("Cast", 9, [x], to=TensorProto.INT32)
    yield case("Cast", 13, [data(4)], to=TensorProto.FLOAT16)
    yield case("Mod", 10, [x, data(4)], fmod=1)
    yield case("Pow", 7, [np.abs(x), data(4)])
    yield case("Pow", 12, [x, Const(ints(2))])
    yield case("PRelu", 7, [x, data(3, 1)])
    yield case("Celu", 12, [x], alpha=0.7)
    yield case("Gelu", 20, [x], approximate="tanh")
    yield case("HardSwish", 14, [x])
    yield case("Mish", 18, [x])


def layers(x, image):
    for opset in (7, 11):
        for axis in (0, 1, 2):
            for op in ("Softmax", "LogSoftmax", "Hardmax"):
                yield case(op, opset, [x], axis=axis)
    yield case("Softmax", 12, [x])
    yield case("Softmax", 13, [x])
    yield case("Softmax", 12, [x], axis=-1)
    yield case("Softmax", 12, [x], axis=-2)
    stats = [Const(data(2)), Const(data(2)), Const(data(2)), Const(np.abs(data(2)))]
    yield case("BatchNormalization", 7, [image] + stats, epsilon=0.01, momentum=0.9)
    yield case("BatchNormalization", 9, [image] + stats)
    yield case("BatchNormalization", 15, [image] + stats)
    yield case("InstanceNormalization", 7, [image, Const(data(2)), Const(data(2))])
    yield case("LayerNormalization", 17, [x, Const(data(4)), Const(data(4))])
    yield case("LRN", 7, [data(1, 5, 3, 3)], size=3)
    yield case("LpNormalization", 7, [x], axis=1, p=1)
    yield case("MeanVarianceNormalization", 9, [image])
    yield case("Gemm", 7, [data(3, 4), data(4, 5), data(5)], alpha=0.5, beta=2.0)
    yield case("Gemm", 9, [data(4, 3), data(5, 4), data(3, 1)], transA=1, transB=1)
    yield case("Gemm", 11, [data(3, 4), data(4, 5)])
    yield case("AveragePool", 7, [image], kernel_shape=[2, 3], pads=[1, 1, 0, 1])
    yield case("AveragePool", 10, [image], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    yield case("AveragePool", 11, [image], kernel_shape=[3, 3], auto_pad="SAME_UPPER",
               count_include_pad=1)
    yield case("MaxPool", 8, [image], kernel_shape=[2, 2], strides=[2, 2], storage_order=0)
    yield case("MaxPool", 12, [image], kernel_shape=[2, 2], dilations=[2, 2])
    yield case("Conv", 7, [image, Const(data(4, 1, 3, 3)), Const(data(4))], group=2,
               auto_pad="SAME_LOWER")
    yield case("ConvTranspose", 7, [image, Const(data(2, 3, 3, 3))], strides=[2, 2],
               output_padding=[1, 1])


def resizes(image):
    none = Const(reals())
    yield case("Upsample", 7, [image], scales=[1.0, 1.0, 2.0, 3.0])
    yield case("Upsample", 9, [image, Const(reals(1, 1, 2, 2))])
    yield case("Upsample", 9, [image, Const(reals(1, 1, 2, 2))], mode="linear")
    yield case("Resize", 10, [image, Const(reals(1, 1, 2, 2))])
    yield case("Resize", 10, [image, Const(reals(1, 1, 0.6, 1.7))], mode="linear")
    yield case("Resize", 11, [image, none, Const(reals(1, 1, 2, 2))])
    yield case("Resize", 11, [image, none, none, Const(ints(1, 2, 7, 9))], mode="linear")
    yield case("Resize", 13, [image, "", "", Const(ints(1, 2, 7, 9))], mode="linear",
               coordinate_transformation_mode="align_corners")
    yield case("Resize", 13, [image, "", Const(reals(1, 1, 1.5, 1.5))], mode="cubic")


def cases():
    x = data(2, 3, 4)
    image = data(1, 2, 5, 6)
    yield from reductions(x)
    yield from shapes_and_movement(x)
    yield from elementwise(x)
    yield from layers(x, image)
    yield from resizes(image)


def model_of(op, opset, inputs, outputs, attrs):
    names, values, initializers, arrays = [], [], [], []
    for i, item in enumerate(inputs):
        if isinstance(item, str):
            names.append("")
        elif isinstance(item, Const):
            names.append(f"c{i}")
            initializers.append(numpy_helper.from_array(item.array, names[-1]))
        else:
            names.append(f"x{i}")
            values.append(helper.make_tensor_value_info(
                names[-1], helper.np_dtype_to_tensor_dtype(item.dtype), item.shape))
            arrays.append((names[-1], item))
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attrs)
    ends = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "case", values, ends, initializers)
    opset_import = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opset_import, ir_version=8), arrays


def write_case(folder, model, arrays):
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    outputs = session.run(None, dict(arrays))
    data_set = folder / "test_data_set_0"
    data_set.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, tensors in (("input", [a for _, a in arrays]), ("output", outputs)):
        for i, array in enumerate(tensors):
            proto = numpy_helper.from_array(np.asarray(array))
            (data_set / f"{kind}_{i}.pb").write_bytes(proto.SerializeToString())


def write_all(root):
    """Folders of the cases that onnxruntime has kernels for, and a line on each other one."""
    folders, refused = [], []
    for i, (op, opset, inputs, outputs, attrs) in enumerate(cases()):
        folder = pathlib.Path(root) / f"{i:03}_{op}_{opset}"
        model, arrays = model_of(op, opset, inputs, outputs, attrs)
        try:
            write_case(folder, model, arrays)
            folders.append(str(folder))
        except Exception as error:  # its errors have no common class
            refused.append(f"{folder.name}: {str(error).splitlines()[0][:150]}")
    return folders, refused


def main():
    if len(sys.argv) > 1:  # write the folders and stop
        print("\n".join(write_all(sys.argv[1])[1]))
        return 0
    if not os.path.exists(PROGRAM):
        print(f"skipped: there is no program {PROGRAM}")
        return 77
    print(f"seed {SEED}")
    with tempfile.TemporaryDirectory() as root:
        folders, refused = write_all(root)
        print(f"{len(folders)} cases; not run by onnxruntime: {len(refused)}")
        print("\n".join(refused))
        if len(refused) > 10:
            print("failed: too many cases that onnxruntime doesn't run")
            return 1
        result = subprocess.run([PROGRAM, "verify", *every_op(), *folders], capture_output=True, text=True)
        lines = result.stdout.splitlines()
        print("\n".join(line for line in lines if not line.startswith("pass")), result.stderr)
        expected = f"{len(folders)} passed, 0 failed, 0 unsupported"
        return 0 if result.returncode == 0 and lines and lines[-1] == expected else 1


if __name__ == "__main__":
    sys.exit(main())
