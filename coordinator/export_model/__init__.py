"""Export a fitted model to other systems: ONNX, PMML, SQL, or Python without packages."""
