// Package ddp holds the test of train.py, an all-reduce training, as a job. It
// needs PyTorch, which `make test` does not bring, so it runs when asked for:
//
//	apt-get install python3-torch
//	go test -tags torch ./examples/pytorch-ddp
package ddp
