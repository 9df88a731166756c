package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// tempPrefix marks what is not finished yet.
const tempPrefix = ".wirelab-"

// FullError says that there was no room for a file. What was written before
// stays usable.
type FullError struct {
	Step string
	Err  error
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("%s: %v; free some space and resume with wirelab run on this directory: finished runs are kept", e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *FullError) Unwrap() error { return e.Err }

// explain wraps err, telling what to do where the disk is full.
func explain(step string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &FullError{Step: step, Err: err}
	}
	return fmt.Errorf("%s: %w", step, err)
}

// WriteFile replaces a file of the directory atomically; name is relative
// ("figures/share.svg") and must stay inside.
func (d *Dir) WriteFile(name string, data []byte) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("write %s: the name leaves the run directory", name)
	}
	if err := d.Lock(); err != nil {
		return err
	}
	return writeFile(filepath.Join(d.path, name), data)
}

// ReadFile reads a file of the directory.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(d.path, name))
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	return b, nil
}

// writeFile writes to a temporary name beside path, syncs, and renames.
func writeFile(path string, data []byte) error {
	dir, base := filepath.Dir(path), filepath.Base(path)
	step := "write " + path
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return explain(step, err)
	}
	f, err := os.CreateTemp(dir, tempPrefix+base+"-*")
	if err != nil {
		return explain(step, err)
	}
	err = func() error {
		if _, err := f.Write(data); err != nil {
			return err
		}
		if err := f.Chmod(0o644); err != nil {
			return err
		}
		return f.Sync()
	}()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return explain(step, err)
	}
	return syncDir(dir)
}

// syncDir makes renames and creations in dir survive a power cut.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	// Some file systems refuse to sync directories; they order renames anyway.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return explain("sync "+dir, err)
	}
	return nil
}

// replaceLink points a symbolic link at target, atomically.
func replaceLink(link, target string) error {
	temp := filepath.Join(filepath.Dir(link), tempPrefix+LatestName+"-"+randomID())
	if err := os.Symlink(target, temp); err != nil {
		return explain("update "+link, err)
	}
	if err := os.Rename(temp, link); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("update %s: %w", link, err)
	}
	return nil
}

// encode writes indented JSON that ends in a newline.
func encode(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// decode reads a JSON file into v; a broken or truncated one is named.
func decode(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read result: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("read %s: broken or truncated at byte %d of %d: %w", path, syntax.Offset, len(b), err)
		}
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// exists reports whether a path is there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
