import { hasKey, onKeyWanted, setKey } from './api.js';
import { restartLive, startLive } from './live.js';
import { find, setText } from './page.js';
import { startSpeech } from './speak.js';
import { loadVoices, startVoices } from './voices.js';

onKeyWanted((problem) => {
    find('key-section').hidden = false;
    setText(find('key-problem'), hasKey() ? problem.message : '');
});

find('key-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    setKey(find('key').value.trim());
    find('key').value = '';
    find('key-section').hidden = true;
    setText(find('key-problem'), '');
    await loadVoices();
    restartLive();
    if (find('key-section').hidden) {
        find('input').focus();
    } else {
        find('key').focus();
    }
});

startSpeech();
startVoices();
startLive(() => loadVoices());
