"""A fitted model as a formula that other systems compute: SQL, PMML, ONNX, or Python without packages."""
