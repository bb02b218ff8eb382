// Small things that every part of the page does.

export const find = (id) => document.getElementById(id);

export function setText(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}

// Says what is wrong beside `id`, or '' for nothing. A field is also marked.
export function setProblem(id, text) {
    const field = find(id);
    setText(find(`${id}-problem`), text);
    if (field?.matches('input, select, textarea')) {
        field.toggleAttribute('aria-invalid', false);
        if (text !== '') {
            field.setAttribute('aria-invalid', 'true');
        }
    }
}

export function make(name, { className = '', text = '' } = {}, ...children) {
    const element = document.createElement(name);
    element.className = className;
    if (text !== '') {
        element.textContent = text;
    }
    element.append(...children);
    return element;
}

export const seconds = (n) => `${n.toFixed(1)}\u00a0s`;

export const rate = (n) => `${(n / 1e9).toPrecision(3)}\u00a0GB/s`;

export function bytes(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    while (n >= 1000 && i < units.length - 1) {
        n /= 1024;
        i++;
    }
    return `${i === 0 ? n : n.toFixed(n < 10 ? 2 : 1)}\u00a0${units[i]}`;
}
