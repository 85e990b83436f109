// SPDX-License-Identifier: Apache-2.0

package serviceentry

// set is a set that costs next to nothing as long as it is small. The zero value
// is empty. The order of its elements has no meaning.
type set[T comparable] struct {
	list []T
	// position holds the place of each element in list; nil while the list is
	// short enough to be searched.
	position map[T]int
}

// short is the size up to which searching a list is cheaper than a map.
const short = 8

func (s *set[T]) len() int { return len(s.list) }

// add adds an element that is not in the set.
func (s *set[T]) add(v T) {
	s.list = append(s.list, v)
	switch {
	case s.position != nil:
		s.position[v] = len(s.list) - 1
	case len(s.list) > short:
		s.position = make(map[T]int, 2*short)
		for i, v := range s.list {
			s.position[v] = i
		}
	}
}

// remove removes an element and reports whether it was there.
func (s *set[T]) remove(v T) bool {
	i := s.find(v)
	if i < 0 {
		return false
	}
	var none T
	last := len(s.list) - 1
	moved := s.list[last]
	s.list[i], s.list[last] = moved, none
	s.list = s.list[:last]
	if s.position != nil {
		s.position[moved] = i
		delete(s.position, v)
		if last == 0 {
			s.position = nil
		}
	}
	return true
}

func (s *set[T]) find(v T) int {
	if s.position != nil {
		if i, ok := s.position[v]; ok {
			return i
		}
		return -1
	}
	for i, w := range s.list {
		if v == w {
			return i
		}
	}
	return -1
}
