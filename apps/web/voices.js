// The list of voices; a new one from the microphone or a file; the end of one.
import { ask, askJson, isAbort, Problem } from './api.js';
import { find, seconds, setProblem, setText } from './page.js';
import { Recorder } from './recorder.js';
import { wavOfSound } from './wav.js';

const READ_BY_SERVER = /\.(wav|flac|ogg|oga|opus|mp3)$/i;
const FIELDS = { name: 'voice-name', transcript: 'transcript', file: 'file' };
const TO_READ = [
    'Every morning the keeper walks along the canal, checks both gates, and writes down how high the water stands. ' +
        'Today it was two metres forty, which is just enough for the long barges.',
    'When the rain came over the hills, nobody on the quay looked up. They had seen worse: thick fog in June, ice on the ' +
        'ropes, and once a whole orchard of apples floating past the church.',
    'Could you pass me the blue jug, please? I want to show you how quickly a small leak fills it, and why a good valve ' +
        'should never be judged by its noise.',
];

let recording = null; /* {blob, name} */
let saving = null; /* the request's AbortController */
let isRecording = false;
let iToRead = 0;

const recorder = new Recorder({
    onProgress(passed, level) {
        find('level-meter').value = level;
        setText(find('record-time'), seconds(passed));
    },
    onEnd(result, words) {
        showRecording(false);
        if (result) {
            takeRecording(result.wav, 'recording.wav', result.seconds);
        } else {
            setProblem('file', words);
        }
    },
});

/* ---- the list ---- */

export async function loadVoices(wanted = find('voice').value) {
    const list = find('voice');
    try {
        const { data } = await askJson('v1/audio/voices');
        const names = data.map((voice) => voice.name ?? voice.id).sort((a, b) => a.localeCompare(b));
        list.replaceChildren(new Option("The server's own", ''), ...names.map((name) => new Option(name, name)));
        list.value = names.includes(wanted) ? wanted : '';
        setProblem('voice', '');
    } catch (error) {
        // Without a key or a server it is said elsewhere, once.
        if (error.status !== 401 && error.status !== 0) {
            setProblem('voice', error.message);
        }
    }
    showChosen();
}

function showChosen() {
    find('voice-delete').disabled = find('voice').value === '';
}

/* ---- a recording ---- */

function showRecording(is) {
    isRecording = is;
    setText(find('record'), is ? 'Stop recording' : 'Record');
    find('level-meter').hidden = !is;
    if (!is) {
        setText(find('record-time'), '');
    }
    setText(find('record-status'), is ? 'Recording. Speak now.' : '');
}

function takeRecording(blob, name, length) {
    const audio = find('preview-audio');
    URL.revokeObjectURL(audio.src);
    recording = { blob, name };
    audio.src = URL.createObjectURL(blob);
    setProblem('file', '');
    find('preview').hidden = false;
    const advice = length < 5 ? ' That is short; 10 to 30 seconds are better.' : '';
    setText(find('preview-words'), `${name}, ${seconds(length)}.${advice}`);
}

function dropRecording() {
    const audio = find('preview-audio');
    recording = null;
    URL.revokeObjectURL(audio.src);
    audio.removeAttribute('src');
    audio.load();
    find('preview').hidden = true;
}

function toggleRecording() {
    setProblem('file', '');
    if (isRecording) {
        recorder.stop();
        return;
    }
    dropRecording();
    find('file').value = '';
    showRecording(true);
    recorder.start();
}

// The server reads what it knows as it is; the rest is what the browser makes of it.
async function takeFile() {
    const [file] = find('file').files;
    setProblem('file', '');
    dropRecording();
    if (!file) {
        return;
    }
    let decoded = null;
    try {
        decoded = await wavOfSound(file);
    } catch {
        if (!READ_BY_SERVER.test(file.name)) {
            setProblem('file', `${file.name} is not a sound that this browser can read. Choose a WAV, FLAC, Ogg or MP3 file.`);
            return;
        }
    }
    if (find('file').files[0] === file) {
        takeRecording(READ_BY_SERVER.test(file.name) ? file : decoded.wav, file.name, decoded?.seconds ?? 0);
    }
}

/* ---- saving ---- */

function openDialog() {
    find('voice-form').reset();
    dropRecording();
    find('replace-line').hidden = true;
    [...Object.values(FIELDS), 'save'].forEach((id) => setProblem(id, ''));
    setText(find('voice-status'), '');
    find('voice-dialog').showModal();
}

function closeDialog() {
    saving?.abort();
    recorder.discard();
    showRecording(false);
    dropRecording();
}

function firstWrong() {
    const name = find('voice-name').value;
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
        return new Problem(name === '' ? 'Give the voice a name.' : 'A name has only letters, digits, _ and -, at most 64.',
            { param: 'name' });
    }
    if (isRecording) {
        return new Problem('Stop the recording first.', { param: 'file' });
    }
    if (!recording) {
        return new Problem('Record something or choose a file.', { param: 'file' });
    }
    if (find('transcript').value.trim() === '') {
        return new Problem('Write down what is said in the recording; the model needs both.', { param: 'transcript' });
    }
    return null;
}

function tell(problem) {
    const isSound = [400, 413, 415].includes(problem.status); /* the rest of the form has been looked at */
    const id = FIELDS[problem.param] ?? (isSound ? 'file' : 'save');
    if (problem.status === 409) {
        find('replace-line').hidden = false;
        setProblem('voice-name', 'There is a voice of that name. Choose another name, or replace it.');
        find('replace').focus();
        return;
    }
    setProblem(id, problem.message);
    if (id !== 'save') {
        find(id).focus();
    }
}

async function save() {
    if (saving) {
        return;
    }
    [...Object.values(FIELDS), 'save'].forEach((id) => setProblem(id, ''));
    const wrong = firstWrong();
    if (wrong) {
        tell(wrong);
        return;
    }
    const form = new FormData();
    const name = find('voice-name').value;
    form.append('name', name);
    form.append('transcript', find('transcript').value);
    form.append('overwrite', String(find('replace').checked));
    form.append('file', recording.blob, recording.name);
    saving = new AbortController();
    find('voice-save').setAttribute('aria-disabled', 'true');
    setText(find('voice-status'), 'Making the voice…');
    try {
        await ask('v1/audio/voices', { method: 'POST', body: form, signal: saving.signal });
        find('voice-dialog').close();
        await loadVoices(name);
        setText(find('news'), `The voice ${name} is saved.`);
    } catch (error) {
        if (!isAbort(error)) {
            tell(error);
        }
    }
    saving = null;
    find('voice-save').removeAttribute('aria-disabled');
    setText(find('voice-status'), '');
}

/* ---- the end of one ---- */

function askDelete() {
    const name = find('voice').value;
    setText(find('delete-words'), `The voice ${name} is removed from the server for good.`);
    setProblem('delete', '');
    find('delete-dialog').showModal();
}

async function remove() {
    const name = find('voice').value;
    try {
        await ask(`v1/audio/voices/${encodeURIComponent(name)}`, { method: 'DELETE' });
    } catch (error) {
        if (error.status !== 404) {
            setText(find('delete-problem'), error.message);
            return;
        }
    }
    find('delete-dialog').close();
    await loadVoices('');
    setText(find('news'), `The voice ${name} is deleted.`);
    find('voice').focus();
}

export function startVoices() {
    find('voice').addEventListener('change', showChosen);
    find('voice-new').addEventListener('click', openDialog);
    find('voice-delete').addEventListener('click', askDelete);
    find('record').addEventListener('click', toggleRecording);
    find('file').addEventListener('change', takeFile);
    find('suggest').addEventListener('click', () => {
        find('transcript').value = TO_READ[iToRead % TO_READ.length];
        iToRead++;
        setProblem('transcript', '');
    });
    find('voice-form').addEventListener('submit', (event) => {
        event.preventDefault();
        save();
    });
    find('voice-cancel').addEventListener('click', () => find('voice-dialog').close());
    find('voice-dialog').addEventListener('close', closeDialog);
    find('delete-no').addEventListener('click', () => find('delete-dialog').close());
    find('delete-yes').addEventListener('click', remove);
}
