package tasklog

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A line of output names scalars in one of these forms. The name has a word of
// scalarWords in it; what stands before the name and after the number does not matter.
//
//	loss = 0.123, step = 40                 TensorFlow
//	loss: 0.123                             most programs
//	Loss 6.9e+00 (7.1e+00)                  examples/imagenet of PyTorch: a decimal number
//	- loss: 0.5 - val_accuracy: 0.9         Keras
//	{'loss': '1.926', 'grad_norm': 4.013}   Hugging Face's Trainer
//	8/40 [00:01<00:04, loss=0.5]            tqdm, Lightning
//
// Values in brackets of a constructor count as well: tensor(0.5), np.float32(0.5),
// Array(0.5).

// scalarWords are the words that make a name that of a scalar: one of its parts, which _,
// -, /, ., @ and digits separate.
var scalarWords = map[string]bool{
	"loss": true, "losses": true, "acc": true, "accuracy": true, "error": true, "err": true, "auc": true, "f1": true,
	"precision": true, "recall": true, "mae": true, "mse": true, "rmse": true, "perplexity": true, "ppl": true,
	"bleu": true, "rouge": true, "psnr": true, "iou": true, "miou": true, "reward": true, "return": true, "elbo": true,
	"kl": true, "entropy": true, "lr": true, "rate": true, "norm": true, "score": true,
}

const (
	maxScalarName = 64 // bytes
	// MaxScalars is the number of names of scalars of which an attempt reports.
	MaxScalars = 16
)

// constructors are texts that may stand between a name and its number.
var constructors = []string{"tensor(", "np.float32(", "np.float64(", "array(", "Array("}

// Scalar is what was found of one name. Values that are not finite are not part of Sum, Min
// and Max.
type Scalar struct {
	Name          string // in lower case
	Last          float64
	Min, Max, Sum float64
	Count         int // of finite values
}

// Mean returns the mean of the finite values; NaN if there is none.
func (s Scalar) Mean() float64 { return s.Sum / float64(s.Count) }

// Merge returns what was found of the same name in two places, the first of which decides
// the last value.
func (s Scalar) Merge(o Scalar) Scalar {
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
	s.Sum += o.Sum
	s.Count += o.Count
	return s
}

// Scalars collects the scalars that an attempt prints. The zero value is ready to be used,
// by one goroutine at a time.
type Scalars struct {
	known map[string]bool // names that were found
	found []Scalar        // since the last Take
}

// In takes in the scalars that a finished line names, in each of the texts that overwrite
// each other in it.
func (s *Scalars) In(line string) {
	texts := strings.Split(line, "\r")
	for _, text := range texts[max(0, len(texts)-mostOver):] {
		s.InText(text)
	}
}

// InText takes in the scalars that a text without carriage returns names.
func (s *Scalars) InText(text string) {
	text = clean(text)
	for at := 0; at < len(text); {
		value, end := numberAt(text, at)
		if end == at {
			at++
			continue
		}
		if name := scalarBefore(text[:at], strings.ContainsAny(text[at:end], ".eE")); name != "" && !strings.HasPrefix(text[end:], "%|") {
			s.Add(name, value)
		}
		at = end
	}
}

// Take returns what was found since its last call, in the order in which the names came,
// and forgets it.
func (s *Scalars) Take() []Scalar {
	found := s.found
	s.found = nil
	return found
}

// Add takes in a scalar that was reported otherwise. Beyond MaxScalars names, and of a name
// that is too long, it is ignored.
func (s *Scalars) Add(name string, value float64) {
	if !s.known[name] {
		if len(name) > maxScalarName {
			return
		}
		if len(s.known) == MaxScalars {
			return
		}
		if s.known == nil {
			s.known = map[string]bool{}
		}
		s.known[name] = true
	}
	i := slices.IndexFunc(s.found, func(f Scalar) bool { return f.Name == name })
	if i < 0 {
		i = len(s.found)
		s.found = append(s.found, Scalar{Name: name, Min: math.Inf(1), Max: math.Inf(-1)})
	}
	f := &s.found[i]
	f.Last = value
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	f.Min, f.Max = min(f.Min, value), max(f.Max, value)
	f.Sum += value
	f.Count++
}

// numberAt parses the number that begins at a place in a text, and returns where it ends: at
// the place itself if none begins there.
func numberAt(text string, at int) (value float64, end int) {
	if at > 0 && !strings.ContainsRune(" \t=:'\"(", rune(text[at-1])) {
		return 0, at
	}
	end = at
	if end < len(text) && (text[end] == '-' || text[end] == '+') {
		end++
	}
	if rest := strings.ToLower(text[end:min(len(text), end+3)]); rest == "nan" || rest == "inf" {
		end += len(rest)
	} else {
		for end < len(text) && (isDigit(text[end]) || text[end] == '.' ||
			(text[end] == 'e' || text[end] == 'E') ||
			(text[end] == '-' || text[end] == '+') && (text[end-1] == 'e' || text[end-1] == 'E')) {
			end++
		}
		end = at + len(strings.TrimRight(text[at:end], ".")) // the end of a sentence
	}
	if end < len(text) && isNameByte(text[end]) && text[end] != '.' {
		return 0, at // a version, a date, a size with its unit
	}
	value, err := strconv.ParseFloat(text[at:end], 64)
	if err != nil {
		return 0, at
	}
	return value, end
}

// scalarBefore returns the name of a scalar whose number follows the text, in lower case; ""
// if there is none. decimal says that the number is not whole, which it has to be where
// only blanks separate the two.
func scalarBefore(text string, decimal bool) string {
	for _, c := range constructors {
		text = strings.TrimSuffix(text, c)
	}
	text = strings.TrimRight(text, " \t'\"")
	if bare := strings.TrimRight(text, "=:"); bare != text && len(text)-len(bare) == 1 {
		text = strings.TrimRight(bare, " \t'\"")
	} else if !decimal {
		return ""
	}
	begin := len(text)
	for begin > 0 && isNameByte(text[begin-1]) {
		begin--
	}
	name := strings.ToLower(strings.TrimLeft(text[begin:], "-./"))
	if len(name) > maxScalarName || !isScalarName(name) {
		return ""
	}
	return name
}

func isScalarName(name string) bool {
	if scalarWords[name] {
		return true
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("_-/.@", r) }) {
		if scalarWords[part] || scalarWords[strings.TrimRight(part, "0123456789")] {
			return true
		}
	}
	return false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// isNameByte reports whether a byte may stand in the name of a scalar.
func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || isDigit(b) || strings.IndexByte("_-/.@", b) >= 0
}
