package programs

import "holdfast/test/pyenv"

// What the programs run on, besides pyenv's own. Those of PyPI's wheels that bring
// CUDA are not used for it: nothing here has a GPU.
var (
	torchNew = pyenv.Environment{Requirements: []string{
		"torch==2.15.0", "lightning==2.6.6", "transformers==5.24.0", "accelerate==1.15.0", "deepspeed==0.19.8", "numpy==2.4.6",
	}}
)
