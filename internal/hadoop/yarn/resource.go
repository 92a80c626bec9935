package yarn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	wire "holdfast/internal/hadoop/wire/yarn"
)

// Names of the resource types that have fields of their own (ResourceInformation).
const (
	MemoryType  = "memory-mb"
	VCoresType  = "vcores"
	gpuResource = "yarn.io/gpu"
)

// Resource is an amount of resources, requested or available.
type Resource struct {
	MemoryMB int64
	VCores   int32
	GPUs     int32
	Others   map[string]Amount // of other resource types, by their names
}

// Fits reports whether r does not exceed what is available of any resource.
func (r Resource) Fits(there Resource) bool {
	return r.MemoryMB <= there.MemoryMB && r.VCores <= there.VCores && r.GPUs <= there.GPUs && r.Lacks(there) == ""
}

// Lacks returns the first resource type among r.Others of which not as much is there;
// empty: there is none.
func (r Resource) Lacks(there Resource) string {
	for _, name := range r.names() {
		if r.Others[name].Compare(there.Others[name]) > 0 {
			return name
		}
	}
	return ""
}

// Equal reports whether both are the same amounts.
func (r Resource) Equal(s Resource) bool {
	return r.MemoryMB == s.MemoryMB && r.VCores == s.VCores && r.GPUs == s.GPUs && maps.Equal(r.Others, s.Others)
}

// Minus returns r minus s.
func (r Resource) Minus(s Resource) Resource {
	left := Resource{MemoryMB: r.MemoryMB - s.MemoryMB, VCores: r.VCores - s.VCores, GPUs: r.GPUs - s.GPUs, Others: maps.Clone(r.Others)}
	for name, there := range left.Others {
		left.Others[name] = there.Minus(s.Others[name])
	}
	return left
}

// Plus returns r and s together.
func (r Resource) Plus(s Resource) Resource {
	sum := Resource{MemoryMB: r.MemoryMB + s.MemoryMB, VCores: r.VCores + s.VCores, GPUs: r.GPUs + s.GPUs, Others: maps.Clone(r.Others)}
	for name, a := range s.Others {
		if sum.Others == nil {
			sum.Others = map[string]Amount{}
		}
		unit := cmp.Or(sum.Others[name].Unit, a.Unit)
		sum.Others[name] = Amount{sum.Others[name].Value + a.In(unit).Value, unit}
	}
	return sum
}

// Types returns the resource types of which r has some, memory first.
func (r Resource) Types() []string {
	types := []string{MemoryType}
	if r.VCores > 0 {
		types = append(types, VCoresType)
	}
	if r.GPUs > 0 {
		types = append(types, gpuResource)
	}
	return append(types, r.names()...)
}

// Of returns how much r has of a resource type.
func (r Resource) Of(name string) Amount {
	switch name {
	case MemoryType:
		return Amount{r.MemoryMB, "Mi"}
	case VCoresType:
		return Amount{Value: int64(r.VCores)}
	case gpuResource:
		return Amount{Value: int64(r.GPUs)}
	}
	return r.Others[name]
}

// Say writes an amount of a resource type for people: 2 GB, 1 vcore, 3 of yarn.io/fpga.
func Say(name string, a Amount) string {
	switch name {
	case MemoryType:
		return Megabytes(a.Value)
	case VCoresType:
		return plural(a.Value, "vcore")
	case gpuResource:
		return plural(a.Value, "GPU")
	}
	return fmt.Sprintf("%s of %s", a, name)
}

// Max returns the greater amount of each resource.
func (r Resource) Max(s Resource) Resource {
	most := Resource{MemoryMB: max(r.MemoryMB, s.MemoryMB), VCores: max(r.VCores, s.VCores), GPUs: max(r.GPUs, s.GPUs), Others: maps.Clone(r.Others)}
	for name, a := range s.Others {
		if most.Others == nil {
			most.Others = map[string]Amount{}
		}
		if a.Compare(most.Others[name]) > 0 {
			most.Others[name] = a
		}
	}
	return most
}

// String is for people: 2 GB, 1 vcore.
func (r Resource) String() string {
	s := []string{Megabytes(r.MemoryMB), plural(int64(r.VCores), "vcore")}
	if r.GPUs > 0 {
		s = append(s, plural(int64(r.GPUs), "GPU"))
	}
	for _, name := range r.names() {
		s = append(s, r.Others[name].String()+" "+name)
	}
	return strings.Join(s, ", ")
}

// names returns those of the other resource types, in order.
func (r Resource) names() []string { return slices.Sorted(maps.Keys(r.Others)) }

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
	// An entry of a type that the cluster does not have is refused (ResourcePBImpl), so
	// nothing is sent where none is wanted.
	add := func(name string, a Amount) {
		if a.Value > 0 {
			p.ResourceValueMap = append(p.ResourceValueMap, &wire.ResourceInformationProto{
				Key: &name, Value: &a.Value, Units: &a.Unit, Type: wire.ResourceTypesProto_COUNTABLE.Enum(),
			})
		}
	}
	add(gpuResource, Amount{int64(r.GPUs), ""})
	for _, name := range r.names() {
		add(name, r.Others[name])
	}
	return p
}

func resource(p *wire.ResourceProto) Resource {
	r := Resource{MemoryMB: p.GetMemory(), VCores: p.GetVirtualCores()}
	for _, v := range p.GetResourceValueMap() {
		switch name := v.GetKey(); name {
		case MemoryType, VCoresType:
		case gpuResource:
			r.GPUs = int32(min(v.GetValue(), math.MaxInt32))
		default:
			if r.Others == nil {
				r.Others = map[string]Amount{}
			}
			r.Others[name] = Amount{v.GetValue(), v.GetUnits()}
		}
	}
	return r
}

// ResourceType is a kind of resource that the cluster counts.
type ResourceType struct {
	Name string
	Unit string // in which it is counted
}

// ResourceTypes returns those that the cluster counts beside memory and vcores, in the order
// of their names.
func (c *Client) ResourceTypes(ctx context.Context) ([]ResourceType, error) {
	var r wire.GetAllResourceTypeInfoResponseProto
	if err := c.rpc.Call(ctx, "getResourceTypeInfo", &wire.GetAllResourceTypeInfoRequestProto{}, &r); err != nil {
		return nil, fmt.Errorf("list the cluster's resource types: %w", err)
	}
	var list []ResourceType
	for _, t := range r.GetResourceTypeInfo() {
		if name := t.GetName(); name != MemoryType && name != VCoresType {
			list = append(list, ResourceType{name, t.GetUnits()})
		}
	}
	slices.SortFunc(list, func(a, b ResourceType) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ResourceWith returns one of a resource type, and nothing else.
func ResourceWith(t ResourceType) Resource {
	if t.Name == gpuResource {
		return Resource{GPUs: 1}
	}
	return Resource{Others: map[string]Amount{t.Name: {1, t.Unit}}}
}

// OptionOfType returns the option of a role that asks for a resource type, where it is one
// of its own; else it returns "".
func OptionOfType(name string) string {
	return map[string]string{MemoryType: "memory", "memory": "memory", VCoresType: "vcores", gpuResource: "gpus"}[name]
}

// Amounts returns what a job's spec says of resource types.
func Amounts[A interface {
	GetValue() int64
	GetUnit() string
}](m map[string]A) map[string]Amount {
	if len(m) == 0 {
		return nil
	}
	all := map[string]Amount{}
	for name, a := range m {
		all[name] = Amount{a.GetValue(), a.GetUnit()}
	}
	return all
}
