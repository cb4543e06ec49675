"""A model's twin: the same file with its weights as float32, so that no activation is rounded to meet them."""

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter, quants


def write_twin(source, target):
    reader = GGUFReader(source)
    writer = GGUFWriter(target, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.ascontiguousarray(quants.dequantize(tensor.data, tensor.tensor_type), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
