package torchfile_test

import (
	"archive/zip"
	"bytes"
	"fmt"
)

// archive makes a file of torch.save of a pickle and ten storages.
func archive(pickle []byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	add := func(name string, content []byte) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(content)
		}
		if err != nil {
			panic(err)
		}
	}
	add("x/data.pkl", pickle)
	for i := range 10 {
		add(fmt.Sprintf("x/data/%d", i), make([]byte, 100))
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
