package mount

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".hf-tmp")
}

func temporaryFor(name string) string {
	return fmt.Sprintf(".%s.%016x.hf-tmp", name[:min(len(name), 200)], rand.Uint64())
}
