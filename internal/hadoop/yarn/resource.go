package yarn

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/yarn"
)

// gpuResource is the name of GPUs among the resource types
// (ResourceInformation.GPU_URI).
const gpuResource = "yarn.io/gpu"

// Resource is an amount of resources, requested or available.
type Resource struct {
	MemoryMB int64
	VCores   int32
	GPUs     int32
}

// Fits reports whether r does not exceed what is available of any resource.
func (r Resource) Fits(there Resource) bool {
	return r.MemoryMB <= there.MemoryMB && r.VCores <= there.VCores && r.GPUs <= there.GPUs
}

// Minus returns r minus s.
func (r Resource) Minus(s Resource) Resource {
	return Resource{MemoryMB: r.MemoryMB - s.MemoryMB, VCores: r.VCores - s.VCores, GPUs: r.GPUs - s.GPUs}
}

// String is for people: 2 GB, 1 vcore.
func (r Resource) String() string {
	s := []string{Megabytes(r.MemoryMB), plural(int64(r.VCores), "vcore")}
	if r.GPUs > 0 {
		s = append(s, plural(int64(r.GPUs), "GPU"))
	}
	return strings.Join(s, ", ")
}

// Megabytes writes an amount of memory for people.
func Megabytes(mb int64) string {
	if mb >= 1024 || mb <= -1024 {
		s := fmt.Sprintf("%.1f", float64(mb)/1024)
		return strings.TrimSuffix(s, ".0") + " GB"
	}
	return fmt.Sprintf("%d MB", mb)
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r Resource) proto() *wire.ResourceProto {
	p := &wire.ResourceProto{Memory: &r.MemoryMB, VirtualCores: &r.VCores}
	if r.GPUs > 0 {
		// An entry of a type that the cluster does not have is refused
		// (ResourcePBImpl), so nothing is sent where none are wanted.
		p.ResourceValueMap = []*wire.ResourceInformationProto{{
			Key: proto.String(gpuResource), Value: proto.Int64(int64(r.GPUs)), Units: proto.String(""),
			Type: wire.ResourceTypesProto_COUNTABLE.Enum(),
		}}
	}
	return p
}

func resource(p *wire.ResourceProto) Resource {
	r := Resource{MemoryMB: p.GetMemory(), VCores: p.GetVirtualCores()}
	for _, v := range p.GetResourceValueMap() {
		if v.GetKey() == gpuResource {
			r.GPUs = int32(min(v.GetValue(), math.MaxInt32))
		}
	}
	return r
}
